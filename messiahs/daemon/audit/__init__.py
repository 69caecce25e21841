"""The audit log of decisions: a JSON line for each one about a task, a policy or a member (not in the papers).

entries.py names what is written, noting.py finds it in a step of the core, journal.py holds it until its batch is
stored, and counts what somebody can cause without cost. files.py has the files of each day and source, and their
bounds, and reading.py reads them. What crossed the links with other sites is a log of its own (`core/audit`).
"""
