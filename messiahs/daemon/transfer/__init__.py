"""Tasks and their files in transit between modules, and the retention of files (MESSIAHS 5.3.3)."""
