"""The executor of tasks: claims on the own machine, attempts in them, and the owner's rules (MESSIAHS 6.2)."""
