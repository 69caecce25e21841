"""Back ends that run tasks."""
