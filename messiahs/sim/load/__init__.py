"""What happens to a simulated federation: its workload, users, owners and faults, drawn from a seed."""
