"""What a daemon keeps on disk: rows, files, outputs, and the clock that survives a restart."""
