"""All daemons of a federation on this machine: one supervisor, and the daemons that it forks."""
