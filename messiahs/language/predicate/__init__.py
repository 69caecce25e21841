"""The paper's predicates: parses a text, and evaluates it over descriptions and classes (MESSIAHS 5.4)."""
