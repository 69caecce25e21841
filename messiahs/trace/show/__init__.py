"""Traces as text for people."""
