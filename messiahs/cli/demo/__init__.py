"""`messiahs demo`: a campus on this machine with a real job on it."""
