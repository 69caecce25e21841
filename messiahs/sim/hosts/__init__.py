"""Simulated hosts of modules and their machines, and a federation of them."""
