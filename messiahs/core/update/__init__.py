"""The update protocol: what a module says of its machines, to whom, and when (MESSIAHS 5.3.1, 7)."""
