"""What an administrator writes for a module: its settings and the topology."""
