"""The filter of system calls, as a program that is run by hand."""

import errno
import platform
import struct
from collections.abc import Callable

import pytest

from messiahs.executor.linux.seccomp import FORBIDDEN, program, why_not

ALLOW, KILL = 0x7FFF0000, 0x80000000
X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003
_LOAD, _RETURN = 0x20, 0x06
_JUMPS: dict[int, Callable[[int, int], bool]] = {
    0x15: lambda value, other: value == other,
    0x35: lambda value, other: value >= other,
    0x45: lambda value, other: bool(value & other),
}
MACHINES = [("x86_64", X86, 0), ("aarch64", ARM, 1)]


def verdict(machine: str, architecture: int, number: int, /, *arguments: int, has_network: bool = True) -> int:
    """Run the program on a system call, as the kernel does."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *(0,) * (6 - len(arguments)))
    code = list(struct.iter_unpack("=HBBI", program(machine, has_network=has_network)))
    accumulator, place = 0, 0
    while True:
        operation, if_true, if_false, value = code[place]
        place += 1
        if operation == _LOAD:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == _RETURN:
            return int(value)
        else:
            place += if_true if _JUMPS[operation](accumulator, value) else if_false


def refused(error: int) -> int:
    return 0x00050000 | error


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_every_named_call_is_refused_and_others_are_not(machine: str, architecture: int, column: int) -> None:
    numbers = {both[column] for both in FORBIDDEN.values()}
    assert len(numbers) == len(FORBIDDEN)
    special = {56, 435, 272, 135, 16, 41} if column == 0 else {220, 435, 97, 92, 29, 198}
    for number in set(range(470)) - special:
        expected = refused(errno.EPERM) if number in numbers else ALLOW
        assert verdict(machine, architecture, number) == expected


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
@pytest.mark.parametrize("number", [428, 467])
def test_trees_of_mounts_are_opened_by_neither_call(machine: str, architecture: int, column: int, number: int) -> None:
    assert number in {both[column] for both in FORBIDDEN.values()}
    assert verdict(machine, architecture, number) == refused(errno.EPERM)


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_calls_of_other_architectures_kill(machine: str, architecture: int, column: int) -> None:
    assert verdict(machine, I386, 1) == KILL
    assert verdict(machine, MACHINES[1 - column][1], 1) == KILL
    assert verdict("x86_64", X86, 0x40000000 + 1) == KILL
    assert verdict(machine, architecture, 1) == ALLOW


@pytest.mark.parametrize(
    ("machine", "architecture", "clone", "unshare"), [("x86_64", X86, 56, 272), ("aarch64", ARM, 220, 97)]
)
def test_no_user_namespace_is_made(machine: str, architecture: int, clone: int, unshare: int) -> None:
    for call in (clone, unshare):
        assert verdict(machine, architecture, call, 0x10000000 | 0x20000) == refused(errno.EPERM)
        assert verdict(machine, architecture, call, 0x00011200) == ALLOW
    assert verdict(machine, architecture, 435) == refused(errno.ENOSYS)


def test_arguments_decide_about_some_calls() -> None:
    assert verdict("x86_64", X86, 135, 0) == ALLOW
    assert verdict("x86_64", X86, 135, 0xFFFFFFFF) == ALLOW
    assert verdict("x86_64", X86, 135, 0x0040000) == refused(errno.EPERM)
    assert verdict("x86_64", X86, 16, 0, 0x5412) == refused(errno.EPERM)
    assert verdict("x86_64", X86, 16, 0, 0x5413) == ALLOW
    for family in (38, 40):
        assert verdict("x86_64", X86, 41, family) == refused(errno.EAFNOSUPPORT)
    assert verdict("x86_64", X86, 41, 1) == ALLOW


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_no_task_decides_about_the_calls_of_others(machine: str, architecture: int, column: int) -> None:
    for flags, expected in ((0, ALLOW), (1, ALLOW), (8, refused(errno.EPERM)), (9, refused(errno.EPERM))):
        assert verdict(machine, architecture, (317, 277)[column], 1, flags) == expected


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        program("riscv64")
    assert (why_not() == "") == (platform.machine() in {"x86_64", "aarch64"})


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_without_a_network_sockets_of_the_internet_are_refused_and_local_ones_are_not(
    machine: str, architecture: int, column: int
) -> None:
    number = (41, 198)[column]
    for family, expected in ((1, ALLOW), (2, refused(errno.EAFNOSUPPORT)), (10, refused(errno.EAFNOSUPPORT))):
        assert verdict(machine, architecture, number, family, has_network=False) == expected
        assert verdict(machine, architecture, number, family) == ALLOW
