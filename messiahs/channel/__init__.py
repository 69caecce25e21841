"""The update, control and task channels (MESSIAHS 5.3)."""
