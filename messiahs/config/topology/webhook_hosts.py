"""Reading to which hosts a module may post the ends of tasks (`webhook_hosts`)."""

import re
from typing import Final

from ruamel.yaml.comments import CommentedSeq

from messiahs.config.topology.host_names import is_host
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section

KEY: Final = "webhook_hosts"
_WITH_PORT: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+)(:(?P<port>[1-9][0-9]{0,4}))?")
_HIGHEST_PORT: Final = 65_535


def read_webhook_hosts(section: Section, problems: Problems) -> tuple[str, ...]:
    """Return the hosts that a mapping allows, `HOST` or `HOST:PORT`, an IPv6 address in brackets; by default none."""
    if KEY not in section:
        return ()
    value = section.values[KEY]
    if isinstance(value, CommentedSeq) and all(_is_allowed(each) for each in value):
        return tuple(str(each).lower() for each in value)
    problems.add(section.value_place(KEY), f"{KEY}: a list of hosts, such as [hooks.example.org, ci.example.org:8443]")
    return ()


def _is_allowed(value: object) -> bool:
    found = _WITH_PORT.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"] or 1) > _HIGHEST_PORT:
        return False
    is_address = found["host"].startswith("[")
    return is_host(found["host"].strip("[]")) and (not is_address or ":" in found["host"])
