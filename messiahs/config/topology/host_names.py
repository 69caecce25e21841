"""Which texts name a host: folders of bundles are named after them, and units and commands contain them."""

import re
from ipaddress import IPv6Address
from typing import Final

_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_NAME_LIMIT: Final = 253


def is_host(text: str) -> bool:
    """Whether a text is the name of a host, or an address of IPv4 or IPv6 without brackets."""
    if ":" not in text:
        return len(text) <= _NAME_LIMIT and _NAME.fullmatch(text) is not None
    address, mark, zone = text.partition("%")
    try:
        IPv6Address(address)
    except ValueError:
        return False
    return not mark or _NAME.fullmatch(zone) is not None
