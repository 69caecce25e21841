"""The starter: one small process per module that is the parent of the module's tasks and outlives its daemon.

It speaks neither to neighbors nor to users, and knows nothing of claims but their places and leases. What it promises
holds whatever its daemon does: an attempt is started once at most, and ends by its limit and its lease.
"""
