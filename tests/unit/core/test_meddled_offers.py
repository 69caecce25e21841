"""Each message by which a running task moves to whoever asked is doubled, late, or lost with its link: it runs once.

An origin's task runs at the executor at the end of a chain. Then the hop between them gets a machine, and asks; the
executor's policy lets go what runs.
"""

import pytest

from messiahs.core.interface.events import AnswerTo, Measured, Submitted
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import RowKind, TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from tests.unit.core.chain import EXECUTOR, HOP, ORIGIN, Chain, Meddling
from tests.unit.core.rig import COMMAND, EPOCH, sdv, tdv

RULES = {
    ORIGIN: "",
    HOP: "migrate { ask every 2s when $here.free_slots >= 1 wanting { }; }",
    EXECUTOR: "migrate { offer when $task.ran < 10min; }",
}
TASK = TaskId(ORIGIN, EPOCH, 1)
RUN_NS = 9 * SECOND // 2
END = Instant(40 * SECOND)


def _talk(meddling: Meddling = Meddling.NOTHING, number: int = 0) -> Chain:
    """Hold the conversation."""
    chain = Chain(meddling=meddling, number=number, rules=RULES, run_ns=lambda _: RUN_NS)
    chain.start()
    chain.run(until=Instant(100 * MILLISECOND))
    submitted = Submitted(
        answer_to=AnswerTo(1), key=ClientKey("k"), tdv=tdv(), requirement="", command=COMMAND, members=0
    )
    chain.post(ORIGIN, submitted)
    chain.run(until=Instant(1_500 * MILLISECOND))
    chain.post(HOP, Measured(sdv=sdv(slots=1)))
    chain.run(until=END)
    return chain


def _row(chain: Chain) -> TaskRow:
    row = chain.rows[ORIGIN][RowKind.TASK, TASK]
    assert isinstance(row, TaskRow)
    return row


def _left(chain: Chain) -> dict[str, list[RowKind]]:
    kept = {RowKind.COUNTERS, RowKind.REMEMBERED, RowKind.USAGE, RowKind.CONSUMER, RowKind.NEIGHBOR_ACCOUNT}
    kinds = {name: {kind for kind, _ in rows} - kept for name, rows in chain.rows.items()}
    return {name: sorted(each) for name, each in kinds.items()}


def test_the_task_moves_to_the_hop_that_asked() -> None:
    chain = _talk()
    assert {"TaskRequest", "TaskAccept", "TaskRevoke", "TaskKill"}.issubset(chain.messages)
    row = _row(chain)
    assert (row.state, row.attempt, row.executed_on) == (TaskState.FINISHED, 2, HOP)
    assert [entry.event for entry in row.history] == ["bound", "moving", "vacating", "moved", "bound", "finished"]


@pytest.mark.parametrize("meddling", [Meddling.AGAIN, Meddling.LATE, Meddling.CUT])
def test_whatever_happens_to_one_message_no_attempt_overlaps_another_and_the_task_ends(meddling: Meddling) -> None:
    undisturbed = _talk()
    for number, name in enumerate(undisturbed.messages, start=1):
        if (meddling, name) == (Meddling.LATE, "Hello"):
            # It is the first on its connection, so nothing can overtake it.
            continue
        chain = _talk(meddling, number)
        said = f"message {number}, {name}"
        assert chain.overlaps == [], said
        assert set(chain.starts.values()) == {1}, said
        assert _row(chain).state is TaskState.FINISHED, said
        assert _left(chain) == _left(undisturbed), said
