"""The predicate language of task filters (MESSIAHS 5.4)."""
