"""What the tasks of a denied round lacked, by the codes of the denial and the machines that are known."""

import pytest

from messiahs.core.interface.messages import DenyCode, Reason, StatusVector, VectorKind
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import requirement_for
from messiahs.core.model.demand import DemandClass, DemandKey, DemandSize
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.task_filter.lacking import lacked
from messiahs.core.task_filter.matching import need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview
from messiahs.core.vectors.vectors import EMPTY, vector_of
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.wire.update import status_vector_from_bytes, status_vector_to_bytes
from tests.unit.core.rig import GIB, sdv, tdv

SMALL: dict[str, Value] = {"slots": 4, "free_slots": 4, "total_mem": 8 * GIB, "avail_mem": 8 * GIB}
EMPTY_DISK: dict[str, Value] = {"total_disk": 8 * GIB, "avail_disk": 8 * GIB}
GPUS: dict[str, Value] = {"gpus": 2, "free_gpus": 0}
ARM: dict[str, Value] = {"arch": "arm", "total_mem": 64 * GIB, "avail_mem": 64 * GIB}
TWO_GPUS = requirement_for([("gpus", 2)])


def lack(
    code: DenyCode,
    *machines: dict[str, Value],
    requirement: str = "",
    here: bool = False,
    stated: dict[str, int] | None = None,
    **more: int,
) -> DemandKey | None:
    """Return what one task lacked, with each machine behind a neighbor of its own, or with the only one here."""
    parsed = predicate_parser(requirement)
    assert not isinstance(parsed, BadPredicate)
    vectors = [IndexedVector(vector_of(sdv(**{**SMALL, **machine}))) for machine in machines]
    views = {} if here else {SystemId(f"s{place}"): vector for place, vector in enumerate(vectors)}
    reasons = (Reason(module=SystemId("home"), code=code),)
    own = vectors[0] if here else IndexedVector(EMPTY)
    need = need_of(tdv(**(stated or {}), **more), parsed)
    return lacked(need, reasons, here=own, views=views, overview=Overview())


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize(
    ("machine", "stated", "lacks"),
    [
        ({}, {"cpus": 5}, DemandKey("cpus", amount=8)),
        ({}, {"mem": 9 * GIB + (1 << 31)}, DemandKey("mem", amount=16 * GIB)),
        (EMPTY_DISK, {"disk": 20 * GIB}, DemandKey("disk", amount=32 * GIB)),
        ({}, {"cpus": 5, "mem": 64 * GIB}, DemandKey("cpus", amount=8)),
    ],
)
def test_the_first_size_that_no_machine_has_is_lacked(
    machine: dict[str, Value], stated: dict[str, int], lacks: DemandKey, *, here: bool
) -> None:
    assert lack(DenyCode.NO_CLASS, machine, here=here, stated=stated) == lacks


@pytest.mark.parametrize(
    ("requirement", "machines", "lacks"),
    [
        ('$arch eq "riscv"', [{}, ARM], DemandKey("arch", arch="riscv")),
        ('$os eq "Plan 9"', [{}, ARM], DemandKey("os", os="Plan 9")),
        ('$arch eq "x86_64" and $total_mem >= 34359738368', [{}, ARM], DemandKey("requirement", arch="x86_64")),
        (TWO_GPUS, [{}, ARM], DemandKey("gpus", amount=2)),
        (f'$arch eq "arm" and {TWO_GPUS}', [GPUS, ARM], DemandKey("gpus", amount=2, arch="arm")),
        ('$arch eq "x86_64"', [GPUS, ARM], DemandKey("mem", amount=64 * GIB, arch="x86_64")),
        ("$speed > 1000000", [{}, ARM], DemandKey("requirement")),
        ("$unknown > 1", [ARM], DemandKey("requirement")),
    ],
)
def test_one_need_after_the_other_is_compared_with_those_that_meet_all_before(
    requirement: str, machines: list[dict[str, Value]], lacks: DemandKey
) -> None:
    found = lack(DenyCode.REQUIREMENT_UNMET, *machines, requirement=requirement, gpus=2, mem=60 * GIB)
    assert found == lacks


@pytest.mark.parametrize(
    ("busy", "lacks"),
    [
        ({"free_slots": 1}, DemandKey("cpus", is_busy=True, amount=2)),
        ({"avail_mem": GIB}, DemandKey("mem", is_busy=True, amount=4 * GIB)),
        ({"gpus": 2, "free_gpus": 1}, DemandKey("gpus", is_busy=True, amount=2)),
        ({"gpus": 2, "free_gpus": 2}, DemandKey("cpus", is_busy=True, amount=2)),
        ({"slots": 1}, DemandKey("cpus", is_busy=True, amount=2)),
    ],
)
def test_what_fitting_machines_have_in_use_is_lacked(busy: dict[str, Value], lacks: DemandKey) -> None:
    assert lack(DenyCode.NO_CAPACITY, busy, cpus=2, mem=4 * GIB, gpus=2) == lacks


def test_a_code_that_views_do_not_explain_is_believed() -> None:
    assert lack(DenyCode.NO_CLASS, {}, cpus=1) == DemandKey("other")
    assert lack(DenyCode.REFUSED_BY_POLICY, {}, cpus=9) == DemandKey("policy")
    assert lack(DenyCode.LIMIT_REACHED, {}, cpus=9) == DemandKey("policy")
    assert lack(DenyCode.DRAINING, {}, cpus=1) == DemandKey("cpus", is_busy=True, amount=1)


@pytest.mark.parametrize("code", [DenyCode.LOST, DenyCode.TIMED_OUT, DenyCode.UNREACHABLE, DenyCode.HOP_LIMIT])
def test_a_lost_neighbor_is_no_lack_of_capacity(code: DenyCode) -> None:
    assert lack(code, {}, cpus=9) is None


def test_what_users_state_about_their_tasks_is_no_capacity() -> None:
    assert lack(DenyCode.NO_CLASS, {}, cpus=9, project=7) == DemandKey("cpus", amount=16)
    assert lack(DenyCode.NO_CAPACITY, {"free_slots": 0}, project=7) == DemandKey("cpus", is_busy=True, amount=1)


def test_many_neighbors_are_judged_as_each_of_them_alone() -> None:
    machines: list[dict[str, Value]] = [
        {"slots": 1 + number % 7, "total_mem": (1 + number) << 27, "arch": f"a{number % 600}"} for number in range(700)
    ]
    assert lack(DenyCode.NO_CLASS, *machines, requirement='$arch eq "a13"', cpus=16) == DemandKey(
        "cpus", amount=16, arch="a13"
    )
    assert lack(DenyCode.NO_CLASS, *machines, requirement='$arch eq "a13"', cpus=1, mem=1 << 40) == DemandKey(
        "mem", amount=1 << 40, arch="a13"
    )
    assert lack(DenyCode.REQUIREMENT_UNMET, *machines, requirement='$arch eq "b"') == DemandKey("arch", arch="b")


@pytest.mark.parametrize(
    ("requirement", "stated"),
    [
        ("", {"cpus": (1 << 63) - 1}),
        ("", {"mem": (1 << 62) + 1}),
        (f'$arch eq "{"a" * 100}"', {}),
        ('$os eq "a\\tb"', {}),
        ("$FooBar >= 1 and $free_FooBar >= 0", {"FooBar": 1}),
    ],
)
def test_whatever_a_user_requires_what_it_lacked_can_be_sent(requirement: str, stated: dict[str, int]) -> None:
    for code in DenyCode:
        key = lack(code, {}, requirement=requirement, stated=stated)
        demand = () if key is None else (DemandClass(key, DemandSize(tasks=1)),)
        vector = StatusVector(kind=VectorKind.FOR_PARENTS, vector=EMPTY, age_ns=0, period_ns=SECOND, demand=demand)
        assert status_vector_from_bytes(status_vector_to_bytes(vector)).demand == demand
