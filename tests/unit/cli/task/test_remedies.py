"""What would have to change: at the last system that is known to have refused, by what it has said."""

from typing import Any

import pytest

from messiahs.cli.output import reason_lines
from messiahs.cli.task.remedies import remedy_lines
from messiahs.core.model.texts import AWAY, DRAINED, NOT_FOREIGN, NOT_LENT, WITHHELD
from tests.unit.cli.task.test_search_lines import asked, reason

REFUSED, DRAINING, BUSY = "refused_by_policy", "draining", "no_capacity"
SMALL = "only small tasks here"


def lines(*reasons: dict[str, Any], left_out: tuple[dict[str, str], ...] = ()) -> list[str]:
    """Return what would have to change if each of these was the answer of one system."""
    order = [asked(each["module"], each["code"], each) for each in reasons]
    return list(remedy_lines([{"order": order, "left_out": left_out}]))


def through(leaf: dict[str, Any], *, code: str = "") -> dict[str, Any]:
    """Return the denial of `uni`, which asked `chem`, which got this one and passed its code, or another, on."""
    passed = code or leaf["code"]
    return reason("uni", passed, "", reason("chem", passed, "", leaf))


@pytest.mark.parametrize(
    ("leaf", "line"),
    [
        (reason("lab", DRAINING, DRAINED), "the drain of lab ended"),
        (reason("lab", DRAINING, f"{DRAINED}: a new roof"), "the drain of lab ended"),
        (reason("lab", DRAINING), "the drain of lab ended"),
        (reason("lab", DRAINING, f"{AWAY} from 2026-11-29T20:39:00Z"), "the announced maintenance of lab ended"),
        (reason("lab", DRAINING, f"{WITHHELD} chem"), "the drain of a system behind lab ended"),
        (reason("lab", REFUSED, NOT_LENT), "the owner of lab lent it again"),
        (reason("lab", REFUSED, f"{NOT_LENT} until 2026-11-29T20:39:00Z"), "the owner of lab lent it again"),
        (reason("lab", BUSY, f"no free GPU; {NOT_LENT}"), "the owner of lab lent it again"),
        (reason("lab", REFUSED, SMALL), "the policy of lab let it in"),
        (reason("lab", REFUSED), "the policy and the owner of lab let it in"),
        (reason("lab", REFUSED, f"{NOT_FOREIGN}: none"), "the policy and the owner of lab let it in"),
        (reason("lab", "limit_reached", "2 at most"), "the limit of lab were not reached"),
        (reason("lab", BUSY), "a place became free at lab"),
        (reason("lab", "lost"), "lab were linked again"),
        (reason("lab", "timed_out"), "lab answered in time"),
        (reason("lab", "unreachable", "no way"), "tasks could be sent to lab"),
        (reason("lab", "no_space", "the disk of this module is full"), "the disk of lab had space"),
    ],
)
def test_the_last_system_that_refused_is_named_however_far_it_is(leaf: dict[str, Any], line: str) -> None:
    assert lines(leaf) == [line]
    assert lines(through(leaf)) == [line]


def test_what_shows_no_room_because_it_is_drained_or_not_lent_is_not_busy() -> None:
    assert lines(through(reason("lab", REFUSED, NOT_LENT), code=BUSY)) == ["the owner of lab lent it again"]
    assert lines(through(reason("lab", DRAINING, DRAINED), code=BUSY)) == ["the drain of lab ended"]
    # Its own machine may be busy as well.
    assert lines(through(reason("lab", REFUSED, SMALL), code=BUSY)) == [
        "the policy of lab let it in",
        "a place became free at chem",
    ]


def test_a_system_that_has_asked_others_is_named_for_what_it_said_of_itself() -> None:
    assert lines(reason("uni", REFUSED, NOT_LENT, reason("lab", REFUSED, SMALL))) == [
        "the policy of lab let it in",
        "the owner of uni lent it again",
    ]
    assert lines(reason("uni", REFUSED, "own machine has no $lab", reason("lab", REFUSED, SMALL))) == [
        "the policy of lab let it in"
    ]
    assert lines(reason("uni", BUSY, "", reason("lab", "requirement_unmet"))) == ["a place became free at uni"]
    assert lines({**reason("home", REFUSED, "no"), "rule": "deny"}) == ["the policy of home let it in"]


def test_those_that_would_help_alike_share_a_line_and_each_is_named_once() -> None:
    labs = [reason(f"lab{number}", DRAINING, DRAINED) for number in range(5)]
    assert lines(reason("uni", DRAINING, "", *labs[:2])) == ["the drain of lab0 or lab1 ended"]
    assert lines(reason("uni", DRAINING, "", *labs)) == ["the drain of lab0, lab1, lab2 or 2 more ended"]
    assert lines(through(labs[0]), through(labs[0])) == ["the drain of lab0 ended"]
    assert lines(reason("uni", DRAINING, "", labs[0], reason("far", REFUSED, SMALL))) == [
        "the drain of lab0 ended",
        "the policy of far let it in",
    ]


def test_those_that_gave_no_reason_or_were_left_out_are_named_by_the_code() -> None:
    order = [asked("gate", REFUSED), asked("far", "hop_limit"), asked("open", "granted", places=1)]
    left_out = [{"system": "busy", "code": BUSY}, {"system": "small", "code": "no_class"}]
    assert list(remedy_lines([{"order": order, "left_out": left_out}])) == [
        "the policy and the owner of gate let it in",
        "a place became free at busy",
    ]


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        (
            reason("phys", DRAINING, "own machine has no $lab", through(reason("lab", DRAINING, DRAINED))),
            [
                "phys: own machine has no $lab",
                "  uni: nobody that it asked takes it",
                "    chem: nobody that it asked takes it",
                "      lab: is drained, or will be before such a task ends: this module is drained",
            ],
        ),
        (
            reason("phys", REFUSED, "own machine has no $lab", through(reason("lab", REFUSED, SMALL))),
            [
                "phys: own machine has no $lab",
                "  uni: nobody that it asked takes it",
                f"    everyone chem asked refused: lab ({SMALL})",
            ],
        ),
        (
            reason("phys", BUSY, "own machine has no $lab", reason("uni", BUSY)),
            ["phys: own machine has no $lab", "  uni: no machine that fits is free now"],
        ),
        (
            {**reason("phys", BUSY, "not now", reason("uni", BUSY)), "rule": "deny"},
            ["phys: refused (deny: not now)", "  uni: no machine that fits is free now"],
        ),
        (
            # A border gives codes of those behind it as its own.
            reason("south", REFUSED, SMALL, reason("south", REFUSED, "not on Sundays")),
            [f"south: refused ({SMALL})", "  south: refused (not on Sundays)"],
        ),
    ],
)
def test_no_module_has_the_code_of_another_one(own: dict[str, Any], shown: list[str]) -> None:
    assert list(reason_lines([own])) == shown
