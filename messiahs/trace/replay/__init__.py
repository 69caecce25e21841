"""Running a recorded trace through the core again, also with another policy."""
