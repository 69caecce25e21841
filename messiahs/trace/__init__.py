"""Stored rows and their formats; recording, replaying and showing traces."""
