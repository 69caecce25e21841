"""The proto files document everything that docs/messages.md shows."""

from collections.abc import Iterator

import pytest

from tests.docs.wire_comments import Comment, Definition, Entry, File, files

_UNITS = {"_ns": "nanoseconds", "_bytes": "bytes"}


def _documented() -> Iterator[tuple[str, Comment]]:
    for file in files():
        yield file.name, file.comment
        yield from file.oneofs.items()
        for definition in (*file.services, *file.messages, *file.enums):
            yield definition.name, definition.comment
            yield from ((f"{definition.name}.{entry.name}", entry.comment) for entry in definition.entries)


def _fields() -> Iterator[tuple[str, Entry]]:
    for message in (each for file in files() for each in file.messages):
        yield from ((f"{message.name}.{field.name}", field) for field in message.entries)


def _sent(file: File) -> Iterator[Definition]:
    messages = {each.name: each for each in file.messages}
    kinds = {field.type for name in file.sent for field in _kinds(messages[name], messages)}
    yield from (messages[name] for name in sorted(file.sent | kinds))


def _kinds(batch: Definition, messages: dict[str, Definition]) -> tuple[Entry, ...]:
    return tuple(
        kind for field in batch.entries if field.type == "ControlMessage" for kind in messages[field.type].entries
    )


@pytest.mark.parametrize(("name", "comment"), [pytest.param(*each, id=each[0]) for each in _documented()])
def test_everything_in_the_proto_files_has_a_comment(name: str, comment: Comment) -> None:
    assert comment.paragraphs, f"{name} has no comment"
    assert all(paragraph.endswith(".") for paragraph in comment.paragraphs), f"{name}: a sentence has no end"


@pytest.mark.parametrize(("name", "field"), [pytest.param(*each, id=each[0]) for each in _fields()])
def test_a_field_has_the_unit_of_its_name_and_a_bound(name: str, field: Entry) -> None:
    for ending, unit in _UNITS.items():
        if field.name.endswith(ending):
            assert field.comment.tags.get("Unit") == unit, f"{name} has no unit"
    is_bounded_by_type = field.is_message or field.is_enum or field.type == "bool"
    if field.is_repeated or not is_bounded_by_type:
        assert field.comment.tags.get("Bound"), f"{name} has no bound"


@pytest.mark.parametrize("message", [each for file in files() for each in _sent(file)], ids=lambda each: each.name)
def test_a_message_that_is_sent_names_its_sender_and_receiver(message: Definition) -> None:
    assert list(message.comment.tags) == ["From", "To"]
