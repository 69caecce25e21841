"""Limits on the slot time of a day: whose time counts, and until when."""

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.ledger_rows import Parties
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny
from messiahs.core.ledger.accounts import enter
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import DAY, HOUR, MINUTE, Instant
from messiahs.core.recovery import Remains
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, ME, ORIGIN, PARENT, Rig, make_module, message_in, request, sent

LIMITED = parse_policy(
    "accept from any { limit 1h cpu per $user per day; } accept from users { limit 1h cpu per $user per day; }",
    file="own.policy",
)


EVENING = Instant(1_000 * DAY - 5 * MINUTE)


@pytest.fixture
def limited(module: ModuleFactory) -> Rig:
    """Make a module with a machine whose policy gives each user an hour a day."""
    rig = module(policy=LIMITED)
    rig.now = EVENING
    rig.greet(CHILD, PARENT)
    rig.measure()
    return rig


def use(rig: Rig, *, user: str = "ann", source: SystemId = ME, sink: SystemId = ME, ns: int = HOUR) -> None:
    origin = ME if sink == ME else ORIGIN
    enter(rig.state, Parties(source=source, sink=sink, origin=origin, user=user), ns, rig.now)


def granted(rig: Rig) -> int:
    """Submit a task of ann, and return how many places of the own machine are granted."""
    rig.submit()
    return len(rig.state.executor.claims)


def test_a_user_whose_day_is_used_up_waits_for_the_next_with_the_rule_as_the_reason(limited: Rig) -> None:
    use(limited)
    assert granted(limited) == 0
    (shape,) = limited.state.origin.shapes.values()
    assert [(each.code, each.rule) for each in shape.reasons if each.module == ME] == [
        (DenyCode.LIMIT_REACHED, "limit 1h cpu per $user per day")
    ]
    limited.wait(4 * MINUTE)
    assert limited.state.executor.claims == {}
    limited.wait(6 * MINUTE)
    assert len(limited.state.executor.claims) == 1


@pytest.mark.parametrize(
    ("used", "is_granted"),
    [
        ({"ns": HOUR - 1}, True),
        ({"user": "bob"}, True),
        ({"source": CHILD}, False),
        # What others gave does not count.
        ({"source": PARENT}, True),
        ({"sink": PARENT}, False),
    ],
)
def test_time_counts_that_was_given_here_and_below_to_that_user(
    limited: Rig, used: dict[str, int | str], *, is_granted: bool
) -> None:
    use(limited, **used)  # type: ignore[arg-type]
    assert granted(limited) == is_granted


def test_a_neighbor_learns_that_a_limit_is_reached(limited: Rig) -> None:
    use(limited, sink=PARENT)
    deny = message_in(limited.hear(PARENT, request()), SchedDeny)
    (reason,) = deny.reasons
    assert (reason.code, reason.rule) == (DenyCode.LIMIT_REACHED, "")
    assert "is used up until midnight UTC" in reason.text


def test_a_restart_forgets_no_time(module: ModuleFactory) -> None:
    before = module(policy=LIMITED)
    before.now = EVENING
    use(before)
    rows = tuple(write.row for write in before.state.ledger.writes.values() if isinstance(write, Store))
    after = Rig(module=make_module(policy=LIMITED), now=before.now)
    after.resume(Remains(rows=rows))
    after.measure()
    assert granted(after) == 0
    assert sent(after.wait(0), SchedAccept) == ()
