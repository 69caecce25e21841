"""How a machine runs accepted tasks: as which of its accounts, and what they reach of the network."""

from typing import Final

NETWORKS: Final = ("none", "loopback", "outbound", "host")
"""What tasks in sandboxes may reach: each of these includes those before it."""


def narrower_of(network: str, other: str) -> str:
    """Return which of two of `NETWORKS` reaches less."""
    return min(network, other, key=NETWORKS.index)


def terms_text(account: str, network: str) -> str:
    """Return what a policy says of how tasks run, to follow other words; empty if they run as tasks usually do."""
    return (f" as account {account}" if account else "") + (f" with network {network} at most" if network else "")
