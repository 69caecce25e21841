"""The live host of a module: feeds events to the core and performs its actions."""
