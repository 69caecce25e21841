"""Searches for places and for tasks, forwarded from module to module (MESSIAHS 6.2)."""
