"""The books of neighbors agree when messages are doubled, late or lost, and when either module is killed anywhere."""

import pytest

from messiahs.core.interface.events import AnswerTo, MemberRemoved, Submitted
from messiahs.core.interface.rows import Row, RowKey, RowKind
from messiahs.core.ledger.books import table
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, SECOND, Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.state.module import ModuleState
from messiahs.sim.checks.ledgers import disagreements
from tests.unit.core.chain import EXECUTOR, HOP, LINKS, ORIGIN, Chain, Meddling
from tests.unit.core.pair import LEFT, RIGHT, RUN_NS, SETTLED_NS, Pair
from tests.unit.core.rig import COMMAND, tdv

MEMBERS = 5
QUIET_NS = 40 * SECOND
SHARES = (0, *(pytest.param(share, marks=pytest.mark.swarm) for share in range(1, 8)))
"""Each message or commit is in one share: every eighth one is quick."""


def submitted() -> Submitted:
    return Submitted(
        answer_to=AnswerTo(1), key=ClientKey("k"), tdv=tdv(), requirement="", command=COMMAND, members=MEMBERS
    )


def live(kill_at: tuple[SystemId, int] | None = None, *, before_commit: bool = False) -> Pair:
    """Run an array from `left` on `right`; each task runs for `RUN_NS`."""
    pair = Pair()
    pair.start()
    pair.run(lambda: False, for_ns=SETTLED_NS)
    pair.kill_at, pair.before_commit = kill_at, before_commit
    pair.post(LEFT, submitted())
    pair.run(lambda: bool(pair.answers) or not pair.hosts[LEFT].is_up, for_ns=SECOND)
    if not pair.answers:
        pair.run(lambda: pair.hosts[LEFT].is_up, for_ns=10 * SECOND)
        pair.post(LEFT, submitted())
    pair.run(lambda: len(pair.ended()) == MEMBERS, for_ns=HOUR)
    pair.run(lambda: False, for_ns=QUIET_NS)
    return pair


def modules(pair: Pair) -> list[SchedulingModule]:
    return [host.module for host in pair.hosts.values()]


def given(state: ModuleState, to: SystemId) -> int:
    return state.ledger.neighbors[to].given_ns


def stored(rows: dict[RowKey, Row], kind: RowKind) -> list[Row]:
    return [row for (each, _), row in rows.items() if each is kind]


def test_each_run_is_given_and_taken_once() -> None:
    pair = live()
    assert given(pair.hosts[RIGHT].module.state, LEFT) == MEMBERS * RUN_NS
    assert pair.hosts[LEFT].module.state.ledger.neighbors[RIGHT].taken_used_ns == MEMBERS * (RUN_NS // 3)
    assert list(disagreements(modules(pair))) == []


@pytest.mark.parametrize("before_commit", [False, True])
@pytest.mark.parametrize("system", [LEFT, RIGHT])
@pytest.mark.parametrize("share", SHARES)
def test_a_kill_at_any_commit_books_no_run_twice_and_none_in_vain(
    share: int, system: SystemId, *, before_commit: bool
) -> None:
    for commit in range(1 + share, live().commits[system] + 1, 8):
        pair = live((system, commit), before_commit=before_commit)
        which = f"commit {commit} of {system}"
        assert list(disagreements(modules(pair))) == [], which
        assert given(pair.hosts[RIGHT].module.state, LEFT) == len(pair.started) * RUN_NS, which
        for name, host in pair.hosts.items():
            for is_own, kind in ((True, RowKind.OWN_BOOK), (False, RowKind.OTHERS_BOOK)):
                books = list(table(host.module.state, is_own=is_own).values())
                assert stored(host.rows, kind) == books == [], f"{name}, {which}"
            accounts = list(host.module.state.ledger.neighbors.values())
            assert stored(host.rows, RowKind.NEIGHBOR_ACCOUNT) == accounts, f"{name}, {which}"


def talk(meddling: Meddling = Meddling.NOTHING, number: int = 0) -> Chain:
    """Run an array from the origin on the executor, through the hop, while a link is cut."""
    chain = Chain(meddling=meddling, number=number, rules={})
    chain.start()
    chain.run(until=Instant(SECOND // 10))
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(SECOND // 2))
    chain.cut(LINKS[1])
    chain.run(until=Instant(50 * SECOND))
    return chain


@pytest.mark.parametrize("link", [*LINKS, *(link[::-1] for link in LINKS)])
def test_both_ends_of_a_link_that_was_ended_under_load_agree(link: tuple[SystemId, SystemId]) -> None:
    chain = Chain(rules={})
    chain.start()
    chain.run(until=Instant(SECOND // 10))
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(SECOND // 2))
    assert chain.starts
    remover, removed = link
    chain.post(remover, MemberRemoved(answer_to=AnswerTo(2), system=removed))
    chain.run(until=Instant(20 * SECOND))
    for name, other in (link, link[::-1]):
        assert other not in chain.modules[name].state.neighbors
    of_each = [(EXECUTOR, HOP), (HOP, ORIGIN)]
    assert [given(chain.modules[giver].state, taker) for giver, taker in of_each] == [
        chain.modules[taker].state.ledger.neighbors[giver].taken_ns for giver, taker in of_each
    ]
    assert given(chain.modules[EXECUTOR].state, HOP) == sum(chain.starts.values()) * SECOND * 3 // 10
    for module in chain.modules.values():
        assert not module.state.ledger.own
        assert not module.state.ledger.others


@pytest.mark.parametrize("meddling", [Meddling.AGAIN, Meddling.LATE, Meddling.CUT])
@pytest.mark.parametrize("share", SHARES)
def test_origin_hop_and_executor_agree_whatever_happens_to_a_message(share: int, meddling: Meddling) -> None:
    messages = talk().messages
    for number in range(1 + share, len(messages) + 1, 8):
        if (meddling, messages[number - 1]) == (Meddling.LATE, "Hello"):
            # It is the first on its connection, so nothing can overtake it.
            continue
        chain = talk(meddling, number)
        which = f"message {number}, {messages[number - 1]}"
        assert list(disagreements(chain.modules.values())) == [], which
        runs = sum(chain.starts.values())
        assert given(chain.modules[EXECUTOR].state, HOP) == runs * SECOND * 3 // 10, which
        assert given(chain.modules[HOP].state, ORIGIN) == runs * SECOND * 3 // 10, which
