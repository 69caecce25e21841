"""The protocol between a daemon and its starter: frames, files and folders."""
