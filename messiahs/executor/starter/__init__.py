"""The starter: one small process per module that is the parent of the module's tasks and outlives its daemon.

It communicates with its daemon only, and knows claims only by their places and leases. Its guarantees do not depend on
the daemon: an attempt is started at most once, and ends by its limit and its lease.
"""
