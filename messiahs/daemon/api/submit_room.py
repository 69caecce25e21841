"""Whether a module has room for what a user submits: on its disk, and within what one user may have stored."""

from messiahs.core.origin.submission import FULL
from messiahs.daemon.storage.description_sizes import LIMIT_BYTES
from messiahs.daemon.storage.store import RowStore


def why_no_room(store: RowStore, user: str, *, is_known: bool) -> str:
    """Return why nothing that a user submits is accepted now, and what they can do; empty if it is.

    What is known is only answered again, so it needs no room within what the user may have.
    """
    if not store.has_room():
        return FULL
    size_bytes = store.sizes.of(user)
    if is_known or size_bytes < LIMIT_BYTES:
        return ""
    return (
        f"your tasks take {size_bytes >> 20} MiB of at most {LIMIT_BYTES >> 20} MiB in "
        "this module; nothing was submitted: forget those that have ended (`messiahs clean`), and others once they have"
    )
