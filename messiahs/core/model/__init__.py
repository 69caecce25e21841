"""Names, instants, attributes and descriptions: the values shared by all rooms of the core (MESSIAHS 5.1, 5.2)."""
