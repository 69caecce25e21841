"""The wire format as its proto files document it: each message, field and enum value with its comment.

A comment is prose, then tags: `Unit:` and `Bound:` of a field, `From:` and `To:` of a message that is sent.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc  # type: ignore[import-untyped]  # ships no types

from tests.unit.wire.regenerate import PROTO

_TAG: Final = re.compile(r"\b(Unit|Bound|From|To): ")
_Path = tuple[int, ...]
_SYNTAX: Final[_Path] = (12,)
# Numbers of fields in FileDescriptorProto, DescriptorProto, EnumDescriptorProto and ServiceDescriptorProto.
_MESSAGE, _ENUM, _SERVICE = 4, 5, 6
_FIELD, _ONEOF, _VALUE, _METHOD = 2, 8, 2, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment: its paragraphs, each on one line, and its tags without the full stop at their end."""

    paragraphs: tuple[str, ...]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A field, an enum value or a method. `type` is its wire type, or the name of a message or enum."""

    name: str
    comment: Comment
    type: str = ""
    is_message: bool = False
    is_enum: bool = False
    is_repeated: bool = False
    is_optional: bool = False
    oneof: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A message, an enum or a service, with its entries in the order of the file."""

    name: str
    comment: Comment
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One proto file; `oneofs` are the comments of its oneofs, by name."""

    name: str
    comment: Comment
    services: tuple[Definition, ...]
    messages: tuple[Definition, ...]
    enums: tuple[Definition, ...]
    oneofs: dict[str, Comment]
    sent: frozenset[str]
    """Messages that a method names."""


def files() -> tuple[File, ...]:
    """Read every proto file, in the order of their names."""
    sources = sorted(path.relative_to(PROTO).as_posix() for path in PROTO.rglob("*.proto"))
    with tempfile.NamedTemporaryFile(suffix=".binpb") as compiled:
        options = ("--include_source_info", f"--descriptor_set_out={compiled.name}")
        code = protoc.main(["protoc", f"-I{PROTO}", *options, *sources])
        assert code == 0, f"protoc failed with {code}"
        described = FileDescriptorSet.FromString(Path(compiled.name).read_bytes())
    return tuple(_file(each) for each in sorted(described.file, key=lambda file: file.name))


def _file(file: FileDescriptorProto) -> File:
    written = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
    comments = {path: _comment(text) for path, text in written.items()}
    return File(
        name=file.name,
        comment=comments[_SYNTAX],
        services=tuple(_service(each, comments, (_SERVICE, at)) for at, each in enumerate(file.service)),
        messages=tuple(_message(each, comments, (_MESSAGE, at)) for at, each in enumerate(file.message_type)),
        enums=tuple(_enum(each, comments, (_ENUM, at)) for at, each in enumerate(file.enum_type)),
        oneofs=dict(_oneofs(file, comments)),
        sent=frozenset(
            _last(name) for each in file.service for m in each.method for name in (m.input_type, m.output_type)
        ),
    )


def _comment(text: str) -> Comment:
    prose, *tagged = _TAG.split(text.strip())
    paragraphs = (" ".join(paragraph.split()) for paragraph in prose.split("\n\n"))
    values = (" ".join(value.split()).removesuffix(".") for value in tagged[1::2])
    return Comment(paragraphs=tuple(filter(None, paragraphs)), tags=dict(zip(tagged[::2], values, strict=True)))


def _message(message: DescriptorProto, comments: dict[_Path, Comment], path: _Path) -> Definition:
    entries = (_field(field, message, comments[*path, _FIELD, at]) for at, field in enumerate(message.field))
    return Definition(name=message.name, comment=comments[path], entries=tuple(entries))


def _field(field: FieldDescriptorProto, message: DescriptorProto, comment: Comment) -> Entry:
    wire_type = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    is_choice = field.HasField("oneof_index") and not field.proto3_optional
    return Entry(
        name=field.name,
        comment=comment,
        type=_last(field.type_name) or wire_type,
        is_message=field.type == FieldDescriptorProto.TYPE_MESSAGE,
        is_enum=field.type == FieldDescriptorProto.TYPE_ENUM,
        is_repeated=field.label == FieldDescriptorProto.LABEL_REPEATED,
        is_optional=field.proto3_optional,
        oneof=message.oneof_decl[field.oneof_index].name if is_choice else "",
    )


def _oneofs(file: FileDescriptorProto, comments: dict[_Path, Comment]) -> Iterator[tuple[str, Comment]]:
    for at, message in enumerate(file.message_type):
        choices = {
            field.oneof_index for field in message.field if field.HasField("oneof_index") and not field.proto3_optional
        }
        for choice in sorted(choices):
            yield f"{message.name}.{message.oneof_decl[choice].name}", comments[_MESSAGE, at, _ONEOF, choice]


def _enum(enum: EnumDescriptorProto, comments: dict[_Path, Comment], path: _Path) -> Definition:
    entries = _named((value.name for value in enum.value), comments, (*path, _VALUE))
    return Definition(name=enum.name, comment=comments[path], entries=entries)


def _service(service: ServiceDescriptorProto, comments: dict[_Path, Comment], path: _Path) -> Definition:
    entries = _named((method.name for method in service.method), comments, (*path, _METHOD))
    return Definition(name=service.name, comment=comments[path], entries=entries)


def _named(names: Iterable[str], comments: dict[_Path, Comment], path: _Path) -> tuple[Entry, ...]:
    return tuple(Entry(name=name, comment=comments[*path, at]) for at, name in enumerate(names))


def _last(qualified: str) -> str:
    return qualified.rpartition(".")[2]
