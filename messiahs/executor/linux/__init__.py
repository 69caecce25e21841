"""Functions of Linux for processes that Python lacks."""
