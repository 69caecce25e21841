"""Back ends that run tasks behind one contract, and the starter: the process that is the parent of all tasks.

`contract` says what every back end promises, `os_process` runs real processes through the starter, `stub` runs
nothing. What cannot be promised: a descendant of a task that left the task's process group *and* changed both its
`TMPDIR` variable and its working directory is ended only when no task runs, or when the starter ends.
"""
