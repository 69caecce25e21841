"""`messiahs sim …`: the same modules in virtual time."""
