"""Forgetting ended tasks before their retention is over."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypedDict

from messiahs.client.connection import Document
from messiahs.client.module import ModuleClient

_IDS = 128
"""Ids in one request."""


class Cleaned(TypedDict):
    """What was forgotten: ids, the number of tasks, the bytes of their outputs; and why others were `kept`, by id.

    `memory_bytes` are what the tasks counted, about, of the memory that a user has in a module.
    """

    ids: list[str]
    tasks: int
    bytes: int
    memory_bytes: int
    kept: dict[str, str]


def joined(answers: Iterable[Document]) -> Cleaned:
    """Return what the answers of modules say together."""
    found = Cleaned(ids=[], tasks=0, bytes=0, memory_bytes=0, kept={})
    for answer in answers:
        found["ids"] += [one["id"] for one in answer["cleaned"]]
        found["tasks"] += sum(one["tasks"] for one in answer["cleaned"])
        found["bytes"] += sum(one["bytes"] for one in answer["cleaned"])
        found["memory_bytes"] += sum(one.get("memory_bytes", 0) for one in answer["cleaned"])
        found["kept"] |= {one["id"]: one["error"] for one in answer["kept"]}
    return found


def clean_named(module: ModuleClient, ids: Sequence[str]) -> Iterator[Document]:
    """Forget tasks and arrays of a module."""
    left = iter(ids)
    while names := list(islice(left, _IDS)):
        yield module.clean({"ids": names})


def clean_older(module: ModuleClient, seconds: float) -> Iterator[Document]:
    """Forget all own tasks of a module that ended so long ago."""
    after = 0
    while True:
        answer = module.clean({"older_than_s": seconds, "after": after})
        yield answer
        after = answer["after"]
        if not after:
            return
