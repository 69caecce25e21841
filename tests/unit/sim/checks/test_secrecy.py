"""What the checker of borders takes for a leak."""

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.sim.checks.secrecy import Secrecy
from messiahs.sim.world.sites import key_of


def names(*each: str) -> frozenset[SystemId]:
    return frozenset(map(SystemId, each))


GATE, INNER = SystemId("gate"), SystemId("inner")
SECRECY = Secrecy(
    inside={GATE: names("inner", "in-1", "in-2"), INNER: names("in-2")},
    beside={GATE: names("inner", "in-1"), INNER: names("in-2")},
    users=("ann",),
)


@pytest.mark.parametrize(
    ("sender", "to", "body", "is_wrong"),
    [
        ("gate", "top", b"gate", False),
        ("gate", "top", b"..in-1..", True),
        ("gate", "top", b"..in-2..", True),
        ("gate", "top", b"ann", True),
        ("gate", "top", key_of(SystemId("in-1")), True),
        ("gate", "in-1", b"in-1 ann", False),
        ("inner", "gate", b"inner", False),
        ("inner", "gate", b"in-2", True),
        ("inner", "in-1", b"in-2", True),
        ("in-1", "top", b"", True),
        ("top", "in-1", b"", True),
        ("in-2", "gate", b"", True),
        ("in-1", "inner", b"in-1", False),
        ("top", "other", b"in-1", False),
    ],
)
def test_a_message_is_wrong_if_it_leads_past_a_border_or_carries_what_that_hides(
    sender: str, to: str, body: bytes, *, is_wrong: bool
) -> None:
    assert bool(SECRECY.why_wrong(SystemId(sender), SystemId(to), body)) is is_wrong


def test_a_system_behind_two_borders_may_send_through_either() -> None:
    shared = names("hub", "leaf")
    secrecy = Secrecy(inside={GATE: shared, INNER: shared}, beside={GATE: shared, INNER: shared})
    assert secrecy.why_wrong(SystemId("hub"), INNER, b"hub") == ""
    assert secrecy.why_wrong(GATE, INNER, b"hub") == ""
    assert secrecy.why_wrong(GATE, SystemId("top"), b"hub") != ""
