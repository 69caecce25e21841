"""Reading where a system serves its metrics, and who may ask for them."""

import re
from pathlib import Path
from typing import Final

from messiahs.config.settings import MetricsSettings
from messiahs.config.topology.files import read_file_name
from messiahs.config.topology.loopback import is_loopback
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys, subsection

KEY: Final = "metrics"
_LISTEN, _CLIENT_ROOTS = "listen", "client_roots"
_ADDRESS: Final = re.compile(r"(?P<host>\[[^\[\]]+\]|[^\[\]:]+):(?P<port>[1-9][0-9]{0,4})", re.ASCII)
_HIGHEST_PORT: Final = 65_535


def read_metrics(section: Section, *, folder: Path, problems: Problems) -> MetricsSettings | None:
    """Return where a system's mapping lets it serve metrics; None if it does not, or (with a problem) in a wrong way.

    An address that is not on loopback needs `client_roots`.
    """
    mapping = subsection(section, KEY, problems) if KEY in section else None
    if mapping is None:
        return None
    refuse_unknown_keys(mapping, (_LISTEN, _CLIENT_ROOTS), problems)
    roots = read_file_name(mapping, _CLIENT_ROOTS, folder=folder, problems=problems)
    if _LISTEN not in mapping:
        problems.add(section.key_place(KEY), "`metrics` needs `listen: ADDRESS:PORT`, such as 127.0.0.1:9464")
        return None
    value, place = mapping.values[_LISTEN], mapping.value_place(_LISTEN)
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    is_on_loopback = is_loopback(found["host"]) if found is not None else None
    if found is None or is_on_loopback is None or int(found["port"]) > _HIGHEST_PORT:
        forms = 'an address of this host and a port, such as 127.0.0.1:9464 or "[::1]:9464"'
        problems.add(place, f"`{_LISTEN}` takes {forms}, not `{value}`")
        return None
    if not is_on_loopback and _CLIENT_ROOTS not in mapping:
        problems.add(
            place,
            f"`{value}` is not on loopback, where anybody could read the metrics as plain text: add `client_roots: "
            "FILE` with the roots (PEM) of those who may ask over TLS, or listen on 127.0.0.1",
        )
        return None
    host = found["host"].strip("[]")
    return MetricsSettings(host=host, port=int(found["port"]), client_roots=roots[0] if roots is not None else None)
