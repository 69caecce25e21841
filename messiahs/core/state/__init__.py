"""The mutable state of a module: as neighbor, hop of searches, origin and executor."""
