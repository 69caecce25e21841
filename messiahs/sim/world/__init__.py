"""The simulated world: virtual time, network, disks and consoles, and how well they work."""
