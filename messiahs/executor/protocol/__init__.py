"""What a daemon and its starter agree on: frames, files and folders."""
