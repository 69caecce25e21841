"""The load of a simulated federation: workload, users, owners and faults, drawn from a seed."""
