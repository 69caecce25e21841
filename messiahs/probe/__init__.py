"""Back ends that measure a machine."""
