"""Topology files: the modules, their relations, and their machines."""
