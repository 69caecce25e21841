"""What must hold during a simulation, and once it has settled."""
