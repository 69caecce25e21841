"""Data of a daemon on disk: rows, files, outputs, and the clock that survives a restart."""
