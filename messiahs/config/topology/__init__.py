"""Topology files: which modules there are, who they are to each other, and what their machines are."""
