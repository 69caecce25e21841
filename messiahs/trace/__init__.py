"""Rows and their formats."""
