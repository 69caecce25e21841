"""The announced maintenance of a module's machine (`messiahs module drain --from`)."""

from pathlib import Path

from messiahs.client.connection import Document
from messiahs.client.module import ModuleClient


def announced_drain(socket_path: Path) -> Document | None:
    """Return `{"begins", "deadline", "reason"}`; None if nothing is announced, or by an older release."""
    with ModuleClient(socket_path) as client:
        announced: Document | None = client.drain_state().get("maintenance")
    return announced
