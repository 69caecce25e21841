"""Limits of the protocol: the most that a module requests, and the most that it accepts from a neighbor."""

from typing import Final

from messiahs.core.model.instants import HOUR, MILLISECOND, MINUTE, SECOND

ASK_LIMIT: Final = 1_024
"""Places, or tasks, requested at once."""
MEMBER_LIMIT: Final = 1_000_000
"""Tasks in one submit."""
SHAPE_LIMIT: Final = 1_000
"""Members of one submit that have a description of their own: the module searches for each by itself."""
WORKFLOW_LIMIT: Final = 5_000
"""Tasks and arrays in one workflow: they are stored in one step."""
REQUEST_LIMIT_BYTES: Final = 8_000_000
"""Bytes of the JSON of one request, such as a submit, that clients send; a module reads some more."""
RETRY_LIMIT: Final = 1_000
"""Reruns of a task whose exit code is not 0."""
INPUT_LIMIT_BYTES: Final = 16 << 30
"""Inputs, in bytes, of a task that states a smaller `$disk`, or none."""
HOPS: Final = 32
"""Modules on the path of a request, unless the policy sets another limit."""
ASKS: Final = 64
"""Modules that may be asked for one request in total, unless the policy sets another limit."""
SIBLINGS: Final = 16
"""Links of a module with siblings, unless the topology file sets another number."""
SIBLINGS_LIMIT: Final = 256
"""The largest such number."""
SETTLING_LIMIT: Final = 64
"""Marks of handovers in a vector."""
USAGES: Final = 256
"""Claims in one report on their usage, or in its acknowledgment."""
RENEWALS_PER_LEASE: Final = 5
LONGEST_LEASE_NS: Final = 7 * 24 * HOUR
"""Longest lease accepted from an executor."""
FIRST_LEASE_NS: Final = 30 * SECOND
"""Longest lease that an executor of another site gets before it has delivered anything."""
SHORTEST_LEASE_NS: Final = 10 * SECOND
"""Shortest lease that an executor grants because a neighbor asks for it."""
LONGEST_SEARCH_NS: Final = 10 * MINUTE
"""Longest search carried out for a neighbor."""
SHORTEST_PERIOD_NS: Final = 50 * MILLISECOND
"""Shortest period between two vectors that a topology file may set, and that a module takes over when it joins."""
LONGEST_PERIOD_NS: Final = HOUR
"""Longest period between two vectors; a neighbor silent for three periods counts as lost."""
