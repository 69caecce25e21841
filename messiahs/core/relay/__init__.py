"""Conversations that pass through a module: bounds, disclosure of names, and forwarding (MESSIAHS 4, 6.2)."""
