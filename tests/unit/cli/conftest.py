"""The peer that speaks the local API is a fixture here."""

from tests.unit.client.local_api_peer import start_peer

__all__ = ["start_peer"]
