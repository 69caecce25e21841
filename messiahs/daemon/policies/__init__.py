"""The policy in force in a live module."""
