"""Systems that join this module: its tokens, and the decision about each request (MESSIAHS 6.2)."""
