"""The size of a task's inputs in its description."""

import pytest

from messiahs.core.model.attributes import EXTENSION_LIMIT, INTEGER_HIGHEST
from messiahs.core.model.descriptions import INPUT_SIZE, TDV
from messiahs.core.model.input_size import contents_of, with_input_size, with_more_inputs
from messiahs.core.model.task_files import InputFile
from tests.unit.core.rig import tdv

MIB = 1 << 20


def file(name: str, size_bytes: int, *, content: bytes = b"") -> InputFile:
    return InputFile(name=name, sha256=content or name.encode(), size_bytes=size_bytes)


@pytest.mark.parametrize(
    ("size_bytes", "stated"),
    [
        (MIB, MIB),
        (MIB + 1, 2 * MIB),
        (3 * MIB, 4 * MIB),
        (5 << 30, 8 << 30),
        (INTEGER_HIGHEST, 1 << 62),
        (1 << 70, 1 << 62),
    ],
)
def test_a_size_is_rounded_up_to_a_power_of_two_that_a_description_can_hold(size_bytes: int, stated: int) -> None:
    assert with_input_size(tdv(), size_bytes) == tdv(input_size=stated)


@pytest.mark.parametrize("size_bytes", [0, 1, MIB - 1])
def test_small_inputs_are_not_stated_and_read_as_0(size_bytes: int) -> None:
    found = with_input_size(tdv(input_size=4 * MIB), size_bytes)
    assert (found, found.description()[INPUT_SIZE]) == (tdv(), 0)
    assert TDV(()).description() == {INPUT_SIZE: 0}


def test_a_task_with_as_many_attributes_of_its_own_as_it_may_have_gets_none_more() -> None:
    own = {f"own_{number}": number for number in range(EXTENSION_LIMIT)}
    assert with_input_size(tdv(**own, mem=1, comm_load=5), MIB) == tdv(**own, mem=1, comm_load=5)
    own.popitem()
    assert with_input_size(tdv(**own), MIB) == tdv(**own, input_size=MIB)


def test_equal_contents_count_once_and_links_and_folders_not_at_all() -> None:
    link = InputFile(name="l", sha256=b"", size_bytes=0, link_target="a")
    folder = InputFile(name="f", sha256=b"", size_bytes=0, is_folder=True)
    files = (file("a", MIB), file("b", 3 * MIB), file("copy of a", MIB, content=b"a"), link, folder)
    assert contents_of(files) == {b"a": MIB, b"b": 3 * MIB}


@pytest.mark.parametrize(("before", "files", "after"), [(0, (3, 2), 8), (4, (1,), 4), (4, (5,), 8)])
def test_more_inputs_never_make_a_size_less(before: int, files: tuple[int, ...], after: int) -> None:
    shared = [file(str(size), size * MIB) for size in files]
    assert with_more_inputs(with_input_size(tdv(), before * MIB), shared) == tdv(input_size=after * MIB)
