"""Joining a federation: tokens, who may use them, and the call by which a system joins (MESSIAHS 6.2)."""
