"""Whether an address that a topology file names is on loopback, where only processes of the own host are."""

from ipaddress import ip_address
from typing import Final

_LOCALHOST: Final = "localhost"


def is_loopback(host: str) -> bool | None:
    """Return whether `localhost` or an address, of IPv6 in brackets, is on loopback; None if it is no address."""
    if host == _LOCALHOST:
        return True
    is_bracketed = host.startswith("[")
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return None
    return address.is_loopback if is_bracketed == (address.version == 6) else None  # noqa: PLR2004 - IPv6
