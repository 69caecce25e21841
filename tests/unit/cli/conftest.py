"""The fixture for a peer that speaks the local API."""

from tests.unit.client.local_api_peer import start_peer

__all__ = ["start_peer"]
