"""`messiahs up` and `down`: run and end all modules of a topology on one machine, and prepare their state."""
