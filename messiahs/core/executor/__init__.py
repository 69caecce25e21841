"""The executor of tasks: claims on the own machine, attempts in them, and the rules of its owner (MESSIAHS 6.2)."""
