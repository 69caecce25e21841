"""Conditions that hold during a simulation, and after it has settled."""
