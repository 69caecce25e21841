"""The simulated host: virtual time around the same core."""
