"""Limits of the protocol: what a module asks for at most, and believes at most of a neighbor."""

from typing import Final

from messiahs.core.model.instants import HOUR, MINUTE

ASK_LIMIT: Final = 1_024
"""Places, or tasks, wanted by one request."""
HOPS: Final = 32
"""Modules that a request may visit one after the other."""
ASKS: Final = 64
"""Modules that may be asked on behalf of one request."""
RENEWALS_PER_LEASE: Final = 5
LONGEST_LEASE_NS: Final = 7 * 24 * HOUR
"""An executor that wants to keep tasks for longer without a sign of life is not believed."""
LONGEST_SEARCH_NS: Final = 10 * MINUTE
"""Whoever is asked to search for longer stops then."""
LONGEST_PERIOD_NS: Final = HOUR
"""Between two vectors; a neighbor that says nothing for three periods is taken for lost."""
