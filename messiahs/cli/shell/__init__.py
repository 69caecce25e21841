"""Completion in shells, and man pages."""
