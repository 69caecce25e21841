"""Back ends that run tasks behind one interface, and the starter: the process that is the parent of all tasks.

`contract` defines the interface, `os_process` runs real processes through the starter, and `stub` runs nothing. One
limitation: a malicious task can give a descendant the mark of another task on the same machine
(`starter/attempt_marks.py`); that descendant may then run until the other task ends.
"""
