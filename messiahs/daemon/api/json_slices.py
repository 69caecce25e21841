"""Bodies of requests in JSON, decoded in slices: requests of others are handled between those of a large one."""

import re
from collections.abc import Generator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar, get_args

import msgspec

T = TypeVar("T")
Steps = Generator[int, None, T]
"""Work in slices. Before each of these, it yields what that is expected to cost, in nanoseconds."""

SMALL_BYTES: Final = 64 << 10
"""A body of this length is decoded in one slice."""
FIELDS_LIMIT_BYTES: Final = 1 << 20
"""Maximum length of everything in a large body that is not decoded in slices."""
_SLICE_BYTES: Final = 32 << 10
SKIP_NS: Final = 2
_DECODE_NS: Final = 20
"""What a byte is expected to cost."""
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_PLACE: Final = re.compile(r"`\$\[(\d+)\]")


class Elements(Enum):
    """What the elements of a list are; their patterns also match some texts that are no JSON.

    The arrays have no arrays in them. The objects have objects in them, and these no further ones.
    """

    STRINGS = _STRING
    ARRAYS = rb"\[(?:" + _STRING + rb'|[^"\[\]]++)*+\]'
    OBJECTS = rb"\{(?:" + _STRING + rb'|[^"{}]++|\{(?:' + _STRING + rb'|[^"{}]++)*+\})*+\}'


def decoding(content: bytes | memoryview, kind: type[T], lists: Mapping[str, Elements], /) -> Steps[T]:
    """Decode an object; its `lists` may be of any length, the rest of a large one has at most 1 MiB.

    Raises `msgspec.MsgspecError` if it is malformed or does not match.
    """
    if len(content) <= SMALL_BYTES:
        yield len(content) * _DECODE_NS
        return decoded(content, kind)
    yield len(content) * SKIP_NS
    # Each field once, whatever the body repeats.
    fields = decoded(content, _undecoded(kind))  # type: ignore[arg-type]
    raws = {name: memoryview(getattr(fields, name)) for name in fields.__struct_fields__}
    large = {name: each for name, each in lists.items() if len(raws.get(name, b"")) > SMALL_BYTES}
    parts = {name: b"[]" if name in large else raw for name, raw in raws.items() if raw}
    longest = max(parts, key=lambda name: len(parts[name]))
    rest = b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in parts.items())
    if len(rest) > FIELDS_LIMIT_BYTES:
        text = f"`{longest}` has {len(parts[longest])} bytes, and all such fields at most {FIELDS_LIMIT_BYTES}"
        raise msgspec.ValidationError(text)
    yield len(rest) * _DECODE_NS
    body = decoded(rest, kind)
    for name, each in large.items():
        element = next(get_args(field.type)[0] for field in msgspec.structs.fields(kind) if field.name == name)  # type: ignore[arg-type]
        setattr(body, name, tuple((yield from decoding_list(raws[name], element, each, name=name))))
    return body


def decoding_list(
    content: bytes | memoryview, element: type[T], elements: Elements, /, *, name: str, most: int | None = None
) -> Steps[list[T]]:
    """Decode the list `name`, of at most so many elements; errors as of `decoding`."""
    text = bytes(content).strip()
    if text[:1] != b"[" or text[1:-1].isspace() or text == b"[]":
        yield len(text) * SKIP_NS
        return decoded(text, list[element])  # type: ignore[valid-type]
    # So each element has a comma behind it.
    text, pattern, found = text[1:-1] + b",", _run_of(elements), list[T]()
    begin, length = 0, _SLICE_BYTES
    while begin < len(text):
        yield length * _DECODE_NS
        match = pattern.match(text, begin, begin + length)
        assert match is not None, "it matches no element as well"
        end = match.end()
        if end == begin:
            if begin + length >= len(text):
                raise msgspec.ValidationError(f"Unexpected value - at `$.{name}[{len(found)}]`")
            length *= 2
            continue
        try:
            found += decoded(b"[%b]" % text[begin : end - 1], list[element])  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(_at(str(error), name, len(found))) from None
        if most is not None and len(found) > most:
            raise msgspec.ValidationError(f"Expected `array` of length <= {most} - at `$.{name}`")
        begin, length = end, _SLICE_BYTES
    return found


def decoded(content: bytes | memoryview, kind: type[T], /) -> T:
    """Decode a text at once; errors as of `decoding`."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (UnicodeDecodeError, msgspec.DecodeError):
        # Which of them says that a text is not UTF-8, and how, differs between releases of msgspec.
        try:
            str(content, "utf-8")
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(f"it is not UTF-8 ({error})") from None
        raise
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def _at(text: str, name: str, before: int) -> str:
    """Return the text of an error in a slice with the place in the whole list."""
    return _PLACE.sub(lambda match: f"`$.{name}[{before + int(match[1])}]", text)


@lru_cache
def _run_of(elements: Elements) -> re.Pattern[bytes]:
    return re.compile(rb"(?:\s*+" + elements.value + rb"\s*+,)*+", re.DOTALL)


@lru_cache
def _undecoded(kind: type[T]) -> type[msgspec.Struct]:
    """Return a type with the same fields, none of which is decoded; one that is absent is empty."""
    names = [each.encode_name for each in msgspec.structs.fields(kind)]  # type: ignore[arg-type]
    fields = [(name, msgspec.Raw, msgspec.Raw(b"")) for name in names]
    return msgspec.defstruct(kind.__name__, fields, forbid_unknown_fields=True)
