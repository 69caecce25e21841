"""The back end that runs tasks as processes of this machine: the daemon's side of the starter's socket."""
