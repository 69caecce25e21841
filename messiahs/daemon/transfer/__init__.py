"""Tasks and their files on the way between modules, and which files are still needed (MESSIAHS 5.3.3)."""
