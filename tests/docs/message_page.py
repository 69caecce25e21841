"""The reference of messages (docs/messages.md), from the comments of the proto files."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.docs.wire_comments import Comment, Definition, Entry, File, files

_ABOUT = """
Modules exchange these messages over three channels; those of `Membership` pass while a system joins, those of
`Certificates` and `Reach` beside a link. A receiver refuses a message with a value outside its bound, and every message
above 1 MiB; a sender cuts texts for people to their bound. Control characters are the C0 and C1 controls, DEL, the line
and paragraph separators, and characters that change the direction of writing.
"""
_ORDER = ("control", "update", "task", "membership", "certificates", "reach", "descriptions")


def message_page(made: str) -> str:
    """Return the page; `made` is the line that names its generator."""
    by_name = {PurePosixPath(file.name).stem: file for file in files()}
    assert set(_ORDER) == set(by_name)
    headings = {each.name: _heading(each) for file in by_name.values() for each in (*file.messages, *file.enums)}
    lines = ["# Messages", "", made, _ABOUT.strip()]
    for name in _ORDER:
        lines += _section(by_name[name], headings)
    return "\n".join(lines) + "\n"


def _section(file: File, headings: dict[str, str]) -> Iterator[str]:
    title, *about = file.comment.paragraphs
    yield from ("", f"## {PurePosixPath(file.name).stem.capitalize()}", "", title)
    for paragraph in about:
        yield from ("", paragraph)
    for service in file.services:
        yield from ("", *service.comment.paragraphs, "")
        yield from (f"- `{service.name}/{method.name}`: {_prose(method.comment)}" for method in service.entries)
    for message in file.messages:
        yield from _message(message, headings)
    for enum in file.enums:
        yield from ("", f"### {headings[enum.name]}", "", _prose(enum.comment), "", "| value | meaning |", "|---|---|")
        yield from (f"| `{value.name}` | {_prose(value.comment)} |" for value in enum.entries)


def _message(message: Definition, headings: dict[str, str]) -> Iterator[str]:
    yield from ("", f"### {headings[message.name]}")
    tags = message.comment.tags
    if tags:
        yield from ("", f"Sender: {tags['From']}. Receiver: {tags['To']}.")
    for paragraph in message.comment.paragraphs:
        yield from ("", paragraph)
    if not message.entries:
        yield from ("", "It has no fields.")
        return
    yield from ("", "| field | type | unit | bound | meaning |", "|---|---|---|---|---|")
    yield from (_row(field, headings) for field in message.entries)


def _row(field: Entry, headings: dict[str, str]) -> str:
    tags = field.comment.tags
    cells = (
        f"`{field.name}`",
        _type(field, headings),
        tags.get("Unit", ""),
        tags.get("Bound", ""),
        _prose(field.comment),
    )
    return f"| {' | '.join(cells)} |"


def _type(field: Entry, headings: dict[str, str]) -> str:
    heading = headings.get(field.type)
    shown = f"[{heading}](#{heading.lower()})" if heading is not None else field.type
    note = "repeated" if field.is_repeated else "optional" if field.is_optional else ""
    choice = f"one of `{field.oneof}`" if field.oneof else ""
    return ", ".join(filter(None, (shown, note or choice)))


def _prose(comment: Comment) -> str:
    return " ".join(comment.paragraphs)


def _heading(definition: Definition) -> str:
    """Return the paper's spelling of a message that is sent, and the name of a part unchanged."""
    name = definition.name
    if not definition.comment.tags:
        return name
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")
