"""`messiahs topology …`: check and draw topology files, and take them to the hosts that run them."""
