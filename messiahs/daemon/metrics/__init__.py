"""Metrics of a module for Prometheus: counted beside the core, and served on an address of their own."""
