"""The Python API: talk to the local scheduling module."""
