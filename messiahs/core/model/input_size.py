"""The size of a task's inputs, for policies that weigh what moving a task costs (MESSIAHS 5.2).

Only its order of magnitude is stated: so tasks whose inputs differ a little have equal descriptions, follow each other
in one claim, and no system learns the length of a file.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from messiahs.core.model.attributes import EXTENSION_LIMIT, TASK_ATTRIBUTES
from messiahs.core.model.descriptions import INPUT_SIZE, TDV, sorted_pairs
from messiahs.core.model.task_files import InputFile

LEAST_STATED_BYTES: Final = 1 << 20
"""Smaller inputs are not stated: every link carries them soon."""
_MOST_BYTES: Final = 1 << 62
"""The greatest power of two that a description can hold."""


def contents_of(files: Iterable[InputFile]) -> dict[bytes, int]:
    """Return the bytes of each content, by its hash: equal files are sent once."""
    return {file.sha256: file.size_bytes for file in files if file.is_file}


def own_bytes(files: Iterable[InputFile], shared: Mapping[bytes, int]) -> int:
    """Return the bytes of the files of one member that are not among the contents `shared` by all."""
    return sum(size_bytes for sha256, size_bytes in contents_of(files).items() if sha256 not in shared)


def with_input_size(tdv: TDV, size_bytes: int) -> TDV:
    """Return a description with a size of inputs, rounded up to a power of two; one stated before is replaced.

    A task that states as many attributes of its own as it may gets none: to release 0.1.0 this is one more of them.
    """
    stated = {name: value for name, value in tdv.pairs if name != INPUT_SIZE}
    is_full = sum(name not in TASK_ATTRIBUTES for name in stated) >= EXTENSION_LIMIT
    if size_bytes >= LEAST_STATED_BYTES and not is_full:
        stated[INPUT_SIZE] = min(_MOST_BYTES, 1 << (size_bytes - 1).bit_length())
    return TDV(sorted_pairs(stated))


def with_more_inputs(tdv: TDV, shared: Iterable[InputFile]) -> TDV:
    """Return the description of tasks that got more inputs; `shared` are all those that each of them has."""
    before = tdv.description()[INPUT_SIZE]
    assert isinstance(before, int), "the module states it"
    return with_input_size(tdv, max(before, sum(contents_of(shared).values())))
