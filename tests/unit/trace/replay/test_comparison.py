"""Which recorded decisions would change under another policy; the recording itself is not disturbed."""

import pytest

from messiahs.config.policies import PolicySource
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.events import (
    ControlReceived,
    Event,
    LinkUp,
    Measured,
    PolicyChanged,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.messages import SchedAccept, StatusVector, VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.replay.comparison import Change, Comparison, compare
from messiahs.trace.replay.replay import replay
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    SIBLING,
    Rig,
    hello,
    make_module,
    message_in,
    remote,
    request,
    sdv,
    tdv,
    transfer,
    view,
)
from tests.unit.trace.taping import Taping, submitted, taping

OPEN = 'policy "open"; accept from any { limit 100 tasks; }'
SMALL = 'policy "small"; accept from any { require $mem default 0B <= 1GiB else "too large"; limit 100 tasks; }'


def _source(text: str) -> PolicySource:
    return PolicySource(file="x.policy", text=text, timeouts=Timeouts())


def _taped(*events: Event, policy: Policy | None = None, minutes: int = 0) -> Taping:
    """Record a module with a machine and three neighbors, to which events happen, and then so many minutes pass."""
    recorded = parse_policy(OPEN, file="x.policy") if policy is None else policy
    tape = taping(Rig(module=make_module(policy=recorded)))
    tape.source = _source(OPEN)
    tape.record()
    tape.start()
    for each in (CHILD, PARENT, SIBLING):
        tape.handle(LinkUp(neighbor=each))
        tape.handle(ControlReceived(sender=each, message=hello(each)))
    tape.handle(Measured(sdv=sdv()))
    tape.now = Instant(tape.now + SECOND)
    tape.expire()
    for event in events:
        tape.handle(event)
    for _ in range(minutes):
        tape.now = Instant(tape.now + MINUTE)
        tape.expire()
    tape.module.end_recording()
    return tape


def _compared(tape: Taping, old: str, new: str) -> Comparison:
    done = compare(tape.files.segments(), (_source(old), _source(new)))
    assert replay(tape.files.segments()).differences == []
    return done


def _of_kind(done: Comparison, kind: str) -> list[Change]:
    return [change for change in done.changes if change.kind == kind]


def _asked(sender: SystemId, number: int = 1, **said: int) -> ControlReceived:
    return ControlReceived(sender=sender, message=request(number, search=bytes([number] * 16), tdv=tdv(**said)))


def test_the_same_policy_twice_changes_nothing_and_is_asked_all_the_same() -> None:
    done = _compared(_taped(_asked(PARENT), submitted()), OPEN, OPEN)
    assert (done.changes, done.notes) == ((), [])
    assert done.asked > 5


def test_a_request_that_the_new_policy_refuses_is_named_with_both_answers_and_the_rule() -> None:
    done = _compared(_taped(_asked(PARENT, mem=2 << 30), _asked(PARENT, 2, mem=5)), OPEN, SMALL)
    (change,) = _of_kind(done, "accept")
    assert (change.module, change.about, change.question) == ("me", f"search {'01' * 4}", "accept 1 slot from parent")
    assert change.old == "accepted"
    assert change.new == "refused_by_policy by require $mem default 0B <= 1GiB: too large"
    assert (change.count, change.first_at_ns) == (1, change.last_at_ns)


def test_revealed_vectors_are_compared_whenever_one_was_sent() -> None:
    new = OPEN + " reveal to parent { only $arch; } reveal to siblings nothing; advertise every 9s { }"
    done = _compared(_taped(), OPEN, new)
    changes = {change.question: change for change in _of_kind(done, "tell")}
    assert set(changes) == {"tell child", "tell parent", "tell sibling"}
    assert (changes["tell child"].old, changes["tell child"].new) == ("every 2 s", "every 9 s")
    assert "name" not in changes["tell parent"].old
    machines = [each for each in _of_kind(done, "tell") if "machines 1" in each.old]
    assert [each.question for each in machines] == ["tell sibling"]
    assert "machines 0" in machines[0].new
    withheld = [each for each in _of_kind(done, "tell") if "$speed revealed" in each.old]
    assert [each.question for each in withheld] == ["tell parent"]
    assert "$speed withheld" in withheld[0].new


def test_the_description_of_the_own_machine_is_part_of_the_comparison() -> None:
    old, new = (f"{OPEN} advertise every 2s {{ set $willingness = {number}; }}" for number in (1, 7))
    done = _compared(_taped(), old, new)
    assert ("$willingness 1", "$willingness 7") in [(each.old, each.new) for each in _of_kind(done, "tell")]


def test_an_order_of_candidates_is_compared_with_the_draws_that_were_recorded() -> None:
    vectors = [
        VectorReceived(sender=sender, message=StatusVector(kind=kind, vector=view(), period_ns=SECOND, age_ns=0))
        for sender, kind in ((SIBLING, VectorKind.FOR_SIBLINGS), (PARENT, VectorKind.FOR_CHILDREN))
    ]
    tape = _taped(*vectors, _asked(CHILD, cpus=4, mem=15 << 30), _asked(CHILD, 2, cpus=4, mem=15 << 30))
    random = OPEN + " rank candidates by random;"
    assert _of_kind(_compared(tape, random, random), "rank") == []
    by_name = OPEN + ' rank candidates by first where $cand.name eq "parent";'
    (change,) = {(each.old, each.new) for each in _of_kind(_compared(tape, OPEN, by_name), "rank")}
    assert change == ("sibling, parent", "parent, sibling")


def test_a_trace_of_another_policy_is_compared_and_says_so() -> None:
    tape = _taped(_asked(PARENT, mem=2 << 30))
    done = _compared(tape, SMALL, OPEN)
    (change,) = _of_kind(done, "accept")
    assert (change.new, change.about) == ("accepted", f"search {'01' * 4}")
    (note,) = done.notes
    assert "recorded under x.policy, SHA-256" in note


def test_a_policy_that_was_loaded_meanwhile_decides_as_recorded() -> None:
    loaded = PolicyChanged(policy=parse_policy(SMALL, file="small.policy"))
    done = _compared(_taped(_asked(PARENT, mem=2 << 30), loaded, _asked(PARENT, 2, mem=2 << 30)), OPEN, SMALL)
    assert [each.about for each in _of_kind(done, "accept")] == [f"search {'01' * 4}", f"search {'02' * 4}"]
    (note,) = done.notes
    assert "small.policy" in note


def test_what_is_asked_again_and_again_about_the_same_is_one_change() -> None:
    tape = _taped(minutes=3)
    done = _compared(tape, OPEN, OPEN + " reveal to parent { only $arch; }")
    (change,) = _of_kind(done, "tell")
    assert change.count > 3
    assert change.first_at_ns + 3 * MINUTE == change.last_at_ns


def test_a_trace_of_the_policy_that_accepts_everybody_can_be_compared() -> None:
    tape = _taped(submitted(), policy=OpenPolicy())
    tape.source = PolicySource(file="", text=None, timeouts=Timeouts())
    done = _compared(tape, OPEN, "accept from users { require $mem < 1B; limit 1 tasks; }")
    questions = {each.question for each in _of_kind(done, "accept")}
    assert {"accept 1 slot from users", "accept a task in its claim from users"} <= questions


def _run(tape: Taping) -> None:
    """Let a task of the parent run on the module's machine, whose owner is away for half a minute and then back."""
    accepted = message_in(tape.handle(_asked(PARENT, 9)), SchedAccept)
    message = transfer(accepted.claim, accepted.ticket, remote())
    tape.handle(TransferReceived(sender=ORIGIN, message=message))
    tape.handle(AttemptStarted(attempt=remote()))
    for idle in (600, *range(30), 600):
        tape.handle(Measured(sdv=sdv(keyboard_idle=idle)))


def _ran(policy: str = OPEN, *, segment_bytes: int = 1 << 20) -> Taping:
    tape = taping(Rig(module=make_module(policy=parse_policy(policy, file="x.policy"))))
    tape.source = _source(policy)
    tape.record(segment_bytes=segment_bytes)
    tape.start()
    tape.handle(LinkUp(neighbor=PARENT))
    tape.handle(ControlReceived(sender=PARENT, message=hello(PARENT)))
    tape.handle(Measured(sdv=sdv(keyboard_idle=600)))
    _run(tape)
    tape.module.end_recording()
    return tape


@pytest.mark.parametrize("segment_bytes", [1 << 20, 1])
def test_what_the_owners_rules_would_do_to_running_tasks_is_compared(segment_bytes: int) -> None:
    desk = (
        OPEN + " running { suspend unless $here.keyboard_idle >= 60s for 10s; resume when $here.keyboard_idle >= 60s; }"
    )
    changes = _of_kind(_compared(_ran(segment_bytes=segment_bytes), OPEN, desk), "protect")
    assert [(each.question, each.old, each.new) for each in changes] == [
        ("protect origin.1#1", "nothing", "suspend by suspend unless $here.keyboard_idle >= 60s for 10s"),
        ("protect origin.1#1", "nothing", "resume by resume when $here.keyboard_idle >= 60s"),
    ]
    assert changes[1].first_at_ns - changes[0].first_at_ns == 20 * SECOND


def test_rules_that_do_the_same_to_running_tasks_are_no_change_however_they_are_written() -> None:
    one = OPEN + " running { kill when $here.keyboard_idle < 10s; }"
    other = OPEN + " running { kill unless $here.keyboard_idle >= 10s; }"
    assert _of_kind(_compared(_ran(one), one, other), "protect") == []
    assert _of_kind(_compared(_ran(), one, other), "protect") == []


def test_a_history_that_only_the_new_policy_keeps_is_kept_while_a_trace_is_compared() -> None:
    tape = taping(Rig(module=make_module(policy=parse_policy(OPEN, file="x.policy"))))
    tape.source = _source(OPEN)
    tape.record()
    tape.start()
    tape.handle(LinkUp(neighbor=CHILD))
    tape.handle(ControlReceived(sender=CHILD, message=hello(CHILD)))
    tape.handle(Measured(sdv=sdv()))
    for load in (9_000, 0):
        vector = StatusVector(kind=VectorKind.FOR_PARENTS, vector=view(load=load), period_ns=SECOND, age_ns=0)
        tape.handle(VectorReceived(sender=CHILD, message=vector))
        tape.now = Instant(tape.now + SECOND)
        tape.expire()
    tape.handle(_asked(CHILD))
    tape.module.end_recording()
    steady = 'accept from any { require $peer.load_sd < 5% else "unsteady"; limit 100 tasks; }'
    (change,) = _of_kind(_compared(tape, OPEN, f"history {{ keep $load over 1h; }} {steady}"), "accept")
    assert change.new == "refused_by_policy by require $peer.load_sd < 5%: unsteady"
    kept = "history { keep $load over 1h; } accept from any { require $peer.load_sd < 50%; limit 100 tasks; }"
    assert _of_kind(_compared(tape, OPEN, kept), "accept") == []
