"""Searches for machines and for tasks, as they travel from module to module (MESSIAHS 6.2)."""
