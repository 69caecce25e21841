"""Names, instants, attributes and descriptions: values that all rooms of the core are about (MESSIAHS 5.1, 5.2)."""
