"""Tasks in boxes of bubblewrap(1), which needs no root: one of its processes for each task, with the task's account."""
