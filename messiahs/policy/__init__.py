"""Scheduling policies as pure functions over what the core knows (MESSIAHS 2: mechanism and policy are apart)."""
