"""Daemons as processes: supervisor, forks, pid files, signals and log."""
