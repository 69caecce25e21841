"""The live host of a module: passes events to the core and performs its actions."""
