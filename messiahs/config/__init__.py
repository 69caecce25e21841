"""Configuration that an administrator writes: settings of a module, and the topology."""
