"""Reading the bounds on bytes that a module stores and passes on for others."""

from messiahs.config.quantities import size_bytes
from messiahs.config.settings import ByteSettings
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys
from messiahs.errors import MessiahsError

_KEYS = ("cache", "streams", "rate", "daily", "outputs")
_MOST_STREAMS = 256
"""Streams of one other system that a module takes at all."""
_LEAST_RATE = 1 << 20
"""Bytes in a second, so that each of many streams is fast enough not to count as broken."""


def read_byte_limits(section: Section, problems: Problems) -> ByteSettings:
    """Return the bounds described by a system's `bytes` mapping."""
    refuse_unknown_keys(section, _KEYS, problems)
    default = ByteSettings()
    cache = _read_size(section, "cache", problems)
    return ByteSettings(
        cache_bytes=default.cache_bytes if cache is None else cache,
        streams=_read_streams(section, problems) if "streams" in section else default.streams,
        rate_bytes=_read_size(section, "rate", problems, lowest=_LEAST_RATE),
        daily_bytes=_read_size(section, "daily", problems, lowest=1),
        outputs_bytes=_read_size(section, "outputs", problems, lowest=1),
    )


def _read_size(section: Section, key: str, problems: Problems, *, lowest: int = 0) -> int | None:
    if key not in section:
        return None
    try:
        size = size_bytes(str(section.values[key]))
    except MessiahsError as error:
        problems.add(section.value_place(key), f"{key}: {error}")
        return None
    if size < lowest:
        problems.add(section.value_place(key), f"{key}: at least {lowest} bytes")
    return size


def _read_streams(section: Section, problems: Problems) -> int:
    value = section.values["streams"]
    if type(value) is int and 1 <= value <= _MOST_STREAMS:
        return int(value)
    problems.add(section.value_place("streams"), f"streams: a number from 1 to {_MOST_STREAMS}, not `{value}`")
    return ByteSettings().streams
