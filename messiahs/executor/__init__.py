"""Back ends that run tasks behind one contract, and the starter: the process that is the parent of all tasks.

`contract` says what every back end promises, `os_process` runs real processes through the starter, `stub` runs
nothing. What cannot be promised: a task that means harm can give a descendant the mark of another task of its machine
(`starter/marks.py`); that descendant may then run until the other task ends.
"""
