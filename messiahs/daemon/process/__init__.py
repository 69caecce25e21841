"""A daemon as a process: its pid file, signals, environment and log."""
