"""`messiahs policy …`: check, format, explain, test, compare and load policies."""
