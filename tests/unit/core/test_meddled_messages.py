"""Each message of a whole conversation in turn is doubled, late, or lost with its link: nothing is lost or doubled.

The conversation of an origin, a hop and an executor has every message in it: an array, a task that is cancelled, one
that nobody takes, renewals, a link that is made anew, a task that its executor's owner wants moved (in vain, which is
called off, and again when there is another place), and an executor that asks for tasks.
"""

from typing import get_args

import pytest

from messiahs.core.interface.events import AnswerTo, CancelRequested, Measured, Submitted
from messiahs.core.interface.messages import ControlMessage
from messiahs.core.interface.rows import RowKind, TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from tests.unit.core.chain import EXECUTOR, HOP, LINKS, ORIGIN, Chain, Meddling
from tests.unit.core.rig import COMMAND, EPOCH, sdv, tdv

MEMBERS = 3
FIRST, LONG, CANCELLED, UNWANTED, MOVED, WANTED = range(1, 7)
END = Instant(50 * SECOND)
"""By now every lease, also as the origin counts it, and every idle claim is over."""
SHARES = (0, *(pytest.param(share, marks=pytest.mark.swarm) for share in range(1, 8)))
"""Each message is in one share: every eighth one is quick."""
_RUN_NS = {LONG: 2 * SECOND, CANCELLED: 100 * SECOND, MOVED: 5 * SECOND // 2}


def _talk(meddling: Meddling = Meddling.NOTHING, number: int = 0, *, stream_failure: str = "") -> Chain:
    """Hold the conversation."""
    chain = Chain(
        meddling=meddling,
        number=number,
        run_ns=lambda task: _RUN_NS.get(task.number, 300 * MILLISECOND),
        stream_failure=stream_failure,
    )
    chain.start()
    chain.run(until=Instant(100 * MILLISECOND))
    _submit(chain, FIRST, members=MEMBERS)
    chain.run(until=Instant(1 * SECOND))
    _submit(chain, LONG)
    _submit(chain, CANCELLED)
    _submit(chain, UNWANTED, requirement="$speed > 1000", waits=False)
    chain.run(until=Instant(1_500 * MILLISECOND))
    chain.cut(LINKS[1])
    chain.run(until=Instant(3 * SECOND))
    chain.post(ORIGIN, CancelRequested(answer_to=AnswerTo(8), task=_task(CANCELLED)))
    _submit_and_move(chain)
    chain.run(until=Instant(19 * SECOND))
    # It waits in vain: whoever asks for tasks could not run it either.
    _submit(chain, WANTED, requirement="$speed > 1000", deadline_ns=3 * SECOND)
    chain.run(until=END)
    return chain


def _submit_and_move(chain: Chain) -> None:
    """Submit a task that is to move, may stay after all, is to move again, and can."""
    chain.run(until=Instant(4 * SECOND))
    _submit(chain, MOVED)
    chain.run(until=Instant(4_300 * MILLISECOND))
    chain.post(EXECUTOR, Measured(sdv=sdv(slots=2, load=9000)))
    chain.run(until=Instant(4_600 * MILLISECOND))
    chain.post(EXECUTOR, Measured(sdv=sdv(slots=2, load=100)))
    chain.run(until=Instant(4_900 * MILLISECOND))
    chain.post(EXECUTOR, Measured(sdv=sdv(slots=2, load=9000)))
    chain.run(until=Instant(5_200 * MILLISECOND))
    chain.post(HOP, Measured(sdv=sdv(slots=1)))


def test_the_conversation_has_every_message_in_it() -> None:
    chain = _talk()
    # Links end, and machines are handed over, in tests of their own (tests/unit/core/membership).
    elsewhere = {"Leave", "SumsSettled", "Handover", "HandoverDone", "SiblingAssignment"}
    control = {kind.__name__ for kind in get_args(ControlMessage)} - elsewhere
    assert set(chain.messages) == control | {"StatusVector", "TaskTransfer"}
    assert _outcome(chain) == ["FINISHED"] * (MEMBERS + 1) + ["KILLED", "DENIED", "FINISHED", "DENIED"]
    history = [entry.event for entry in _row(chain, MOVED).history]
    assert history == ["bound", "moving", "moving", "vacating", "moved", "bound", "finished"]


@pytest.mark.parametrize("share", SHARES)
def test_a_message_that_comes_again_changes_nothing(share: int) -> None:
    undisturbed = _talk()
    expected = (_outcome(undisturbed), undisturbed.starts, _left(undisturbed))
    for number, name in _numbered(undisturbed, share):
        chain = _talk(Meddling.AGAIN, number)
        assert (_outcome(chain), chain.starts, _left(chain)) == expected, f"message {number}, {name}"
        assert chain.overlaps == []


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("meddling", [Meddling.LATE, Meddling.CUT])
def test_a_message_that_comes_late_or_not_at_all_loses_and_doubles_nothing(meddling: Meddling, share: int) -> None:
    undisturbed = _talk()
    for number, name in _numbered(undisturbed, share):
        if (meddling, name) == (Meddling.LATE, "Hello"):
            # It is the first on its connection, so nothing can overtake it.
            continue
        chain = _talk(meddling, number)
        which = f"message {number}, {name}"
        assert chain.overlaps == [], which
        assert set(chain.starts.values()) == {1}, which
        assert _outcome(chain) == _outcome(undisturbed), which
        assert _left(chain) == _left(undisturbed), which


@pytest.mark.parametrize("meddling", [Meddling.AGAIN, Meddling.LATE, Meddling.CUT])
def test_tasks_that_take_the_path_are_neither_lost_nor_doubled(meddling: Meddling) -> None:
    undisturbed = _talk(stream_failure="far")
    assert _outcome(undisturbed) == _outcome(_talk())
    assert all(any(entry.event == "route" for entry in row.history) for row in _started(undisturbed))
    transfers = [number for number, name in enumerate(undisturbed.messages, start=1) if name == "TaskTransfer"]
    assert len(transfers) >= 2 * MEMBERS
    for number in transfers:
        chain = _talk(meddling, number, stream_failure="far")
        assert chain.overlaps == [], number
        assert set(chain.starts.values()) == {1}, number
        assert _outcome(chain) == _outcome(undisturbed), number
        assert _left(chain) == _left(undisturbed), number


def _started(chain: Chain) -> list[TaskRow]:
    """Return the rows of tasks that ran."""
    rows = [row for row in chain.rows[ORIGIN].values() if isinstance(row, TaskRow)]
    return [row for row in rows if any(entry.module == EXECUTOR for entry in row.history)]


def _numbered(chain: Chain, share: int) -> list[tuple[int, str]]:
    """Return every message of one share of a conversation, with its number."""
    return list(enumerate(chain.messages, start=1))[share :: len(SHARES)]


def _submit(chain: Chain, number: int, **more: object) -> None:
    given = {"tdv": tdv(), "requirement": "", "command": COMMAND, "key": ClientKey(str(number)), **more}
    chain.post(ORIGIN, Submitted(answer_to=AnswerTo(number), **given))  # type: ignore[arg-type]


def _task(number: int) -> TaskId:
    return TaskId(ORIGIN, EPOCH, number)


def _row(chain: Chain, number: int) -> TaskRow:
    row = chain.rows[ORIGIN][RowKind.TASK, _task(number)]
    assert isinstance(row, TaskRow)
    return row


def _outcome(chain: Chain) -> list[str]:
    """Return the states in which the tasks ended, in order of their ids."""
    tasks = sorted((row for row in chain.rows[ORIGIN].values() if isinstance(row, TaskRow)), key=lambda row: row.id)
    return [row.state.name for row in tasks]


def _left(chain: Chain) -> dict[str, list[RowKind]]:
    """Return the kinds of rows that every module still stores.

    The hop's counters are left out, and what neighbors said of theirs: these depend on which message came late.
    """
    left = {name: {kind for kind, _ in rows} for name, rows in chain.rows.items()}
    left[HOP].discard(RowKind.COUNTERS)
    for kinds in left.values():
        kinds.discard(RowKind.REMEMBERED)
    return {name: sorted(kinds) for name, kinds in left.items()}
