"""What Linux offers for processes, and Python does not."""
