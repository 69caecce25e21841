"""Reading where a system sends the spans of the attempts of its users' tasks, and which roots its collector has."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from messiahs.config.settings import OtlpSettings
from messiahs.config.topology.files import read_file_name
from messiahs.config.topology.host_names import is_host
from messiahs.config.topology.loopback import is_loopback
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys, subsection

KEY: Final = "otlp"
_ENDPOINT, _ROOTS = "endpoint", "roots"
_EXAMPLE: Final = "https://collector.example.org:4318/v1/traces"
_HTTP, _HTTPS = "http", "https"
_PLAIN: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]+\]|[^\[\]:@]+)(:(?P<port>[1-9][0-9]{0,4}))?")
_HIGHEST_PORT: Final = 65_535


def read_otlp(section: Section, *, folder: Path, problems: Problems) -> OtlpSettings | None:
    """Return where a system's mapping lets it send spans; None if it does not, or (with a problem) in a wrong way.

    An endpoint that is not on loopback needs https.
    """
    mapping = subsection(section, KEY, problems) if KEY in section else None
    if mapping is None:
        return None
    refuse_unknown_keys(mapping, (_ENDPOINT, _ROOTS), problems)
    roots = read_file_name(mapping, _ROOTS, folder=folder, problems=problems)
    if _ENDPOINT not in mapping:
        problems.add(section.key_place(KEY), f"`{KEY}` needs `{_ENDPOINT}: URL`, such as {_EXAMPLE}")
        return None
    value = mapping.values[_ENDPOINT]
    problem = _problem_with(value)
    if problem:
        problems.add(mapping.value_place(_ENDPOINT), problem)
        return None
    if roots is not None and urlsplit(value).scheme == _HTTP:
        problems.add(mapping.key_place(_ROOTS), f"`{_ROOTS}` are those of a certificate, and `{value}` has none")
        return None
    return OtlpSettings(endpoint=value, roots=roots[0] if roots is not None else None)


def _problem_with(value: object) -> str:
    """Return why spans cannot be sent to a URL, with the remedy; empty if they can."""
    parts = _parts_of(value)
    if parts is None:
        return f"`{_ENDPOINT}` takes the URL of a collector, such as {_EXAMPLE}, not `{value}`"
    if parts.username is not None:
        return f"`{_ENDPOINT}` takes a URL without a user and password: who may read this file could read them"
    authority = _AUTHORITY.fullmatch(parts.netloc)
    host = authority["host"] if authority is not None else ""
    is_known = is_loopback(host) is not None or (not host.startswith("[") and is_host(host))
    if authority is None or not is_known or int(authority["port"] or 1) > _HIGHEST_PORT:
        return f"`{_ENDPOINT}` takes a URL with HOST or HOST:PORT, such as {_EXAMPLE}, not `{value}`"
    if parts.path in ("", "/") or parts.query or parts.fragment:
        return f"`{_ENDPOINT}` takes the whole URL for traces, which most often ends in /v1/traces, not `{value}`"
    if parts.scheme == _HTTP and not is_loopback(host):
        return (
            f"`{value}` is not on loopback, where others could read the spans on their way: use https, with `{_ROOTS}: "
            "FILE` (PEM) if its certificate is of an authority of your own, or a collector on 127.0.0.1"
        )
    return ""


def _parts_of(value: object) -> SplitResult | None:
    if not isinstance(value, str) or _PLAIN.fullmatch(value) is None:
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return parts if parts.scheme in (_HTTP, _HTTPS) and parts.netloc else None
