"""Back ends that measure the machine of a system (MESSIAHS 5.1)."""
