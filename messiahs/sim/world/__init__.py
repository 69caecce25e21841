"""The simulated world: virtual time, network, disks and consoles, and their conditions."""
