"""The peer with a local API as a fixture."""

from tests.unit.client.local_api_peer import start_peer

__all__ = ["start_peer"]
