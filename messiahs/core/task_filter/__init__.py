"""The task filter: which machines match a task, and which tasks the policy accepts, in which order (MESSIAHS 5.4)."""
