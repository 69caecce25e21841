"""Traces as text for users."""
