"""A whole policy explained: over facts, over the machines of a pool, and by what its tests have seen."""
