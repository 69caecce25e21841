"""`messiahs doctor`: what is wrong with a module and its surroundings, and what to do."""
