"""`messiahs up` and `down`: all modules of a topology on one machine, and what is written before a module starts."""
