"""Reading how a system keeps its connections alive, and through which HTTP proxy it dials others."""

from typing import Final
from urllib.parse import urlsplit

from messiahs.config.quantities import duration_ns
from messiahs.config.settings import ConnectionSettings
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.errors import MessiahsError

KEYS: Final = ("keep_alive", "http_proxy")
_SHORTEST_NS: Final = 5 * SECOND
"""Earlier releases hang up on a peer that pings more often."""
_LONGEST_NS: Final = 5 * MINUTE
_PROXY_FORM: Final = "an HTTP proxy as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"


def read_connections(section: Section, problems: Problems) -> ConnectionSettings:
    """Return what a system's mapping says about its connections."""
    keep_alive_ns = _read_keep_alive(section, problems) if "keep_alive" in section else None
    return ConnectionSettings(
        keep_alive_ns=ConnectionSettings().keep_alive_ns if keep_alive_ns is None else keep_alive_ns,
        http_proxy=_read_proxy(section, problems) if "http_proxy" in section else None,
    )


def _read_keep_alive(section: Section, problems: Problems) -> int | None:
    try:
        keep_alive_ns = duration_ns(str(section.values["keep_alive"]))
    except MessiahsError as error:
        problems.add(section.value_place("keep_alive"), f"keep_alive: {error}")
        return None
    if not _SHORTEST_NS <= keep_alive_ns <= _LONGEST_NS:
        problems.add(section.value_place("keep_alive"), "keep_alive: from 5s to 5min")
    return keep_alive_ns


def _read_proxy(section: Section, problems: Problems) -> str | None:
    value = section.values["http_proxy"]
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        is_proxy = parts is not None and parts.scheme == "http" and bool(parts.hostname) and parts.port is not None
    except ValueError:
        is_proxy = False
    if not is_proxy:
        problems.add(section.value_place("http_proxy"), f"`http_proxy` takes {_PROXY_FORM}")
        return None
    return str(value)
