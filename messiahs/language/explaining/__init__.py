"""Explanations of a whole policy: over facts, over the machines of a pool, and by the coverage of its tests."""
