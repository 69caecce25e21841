"""Tasks in sandboxes: prepared namespaces, an account for each slot, and a read-only view of the machine."""
