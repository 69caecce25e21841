"""The back end that runs tasks as processes of this machine: the daemon's end of the starter's socket."""
