"""Laws of the turns of neighbors: nobody starves, shares are bounded, and the order of each neighbor is kept."""

import asyncio
from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND
from messiahs.daemon.host.turns import BURST_NS, DEBT_NS, QUANTUM_NS, REFILL_SHARE, Turns, Users, Work

_NAMES = [SystemId(name) for name in ("a", "b", "c", "d")]
_COSTS_NS = st.integers(min_value=0, max_value=20 * MILLISECOND)
_PLANS = st.lists(st.tuples(st.sampled_from(_NAMES), _COSTS_NS), min_size=1, max_size=60)
_LARGEST_NS = 20 * MILLISECOND


class _Played:
    """Neighbors that send works with given costs, on a clock that only their costs move (mutable)."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.turns = Turns[SystemId](lambda _: None)
        self.now = 0
        self.costs: dict[Work[SystemId], int] = {}
        self.sent: defaultdict[SystemId, list[Work[SystemId]]] = defaultdict(list)
        self.handled: defaultdict[SystemId, list[Work[SystemId]]] = defaultdict(list)
        self.used_ns: Counter[SystemId] = Counter()

    def send(self, source: SystemId, cost_ns: int) -> None:
        work = Work(source=source, events=iter(()), done=self.loop.create_future())
        self.costs[work] = cost_ns
        self.sent[source].append(work)
        self.turns.add_message(work, self.now, size_bytes=0)

    def step(self) -> SystemId | None:
        work = self.turns.next(self.now)
        if work is None:
            return None
        self.now += self.costs[work]
        self.turns.charge(work.source, self.costs[work], self.now)
        self.turns.finish(work)
        self.handled[work.source].append(work)
        self.used_ns[work.source] += self.costs[work]
        return work.source

    def wait(self) -> None:
        wait_ns = self.turns.ready_in(self.now)
        assert wait_ns is not None
        self.now += wait_ns


@given(_PLANS)
def test_everything_is_handled_once_in_the_order_of_its_neighbor(plan: list[tuple[SystemId, int]]) -> None:
    played = _Played()
    for source, cost_ns in plan:
        played.send(source, cost_ns)
    for _ in range(4 * len(plan)):
        if played.turns.ready_in(played.now) is None:
            break
        if played.step() is None:
            # Whoever waits for its bucket can go on after the time that it is told.
            played.wait()
            assert played.step() is not None
    assert played.handled == played.sent
    assert played.turns.ready_in(played.now) is None
    played.loop.close()


@given(_PLANS, _COSTS_NS)
def test_a_neighbor_that_always_sends_gets_its_share_whatever_the_others_send(
    plan: list[tuple[SystemId, int]], cost_ns: int
) -> None:
    played = _Played()
    honest = SystemId("honest")
    for source, cost in plan:
        played.send(source, cost)
    played.send(honest, cost_ns)
    used_before_ns: Counter[SystemId] = Counter()
    while honest not in played.handled:
        before = played.used_ns.copy()
        assert played.step() is not None, "nobody is active who could let all of them wait"
        used_before_ns = before
    # One quantum each, and the last message, which may cost more than is left of it.
    assert all(used_ns <= QUANTUM_NS + _LARGEST_NS for used_ns in used_before_ns.values())
    played.loop.close()


@given(st.lists(_COSTS_NS, min_size=20, max_size=100))
def test_while_users_are_active_a_neighbor_gets_its_bucket_and_its_share_of_time(costs: list[int]) -> None:
    played = _Played()
    evil = _NAMES[0]
    for cost_ns in costs:
        played.send(evil, cost_ns)
    while played.turns.ready_in(played.now) is not None:
        played.turns.note_active(Users.LOCAL, played.now)
        if played.step() is None:
            played.wait()
        assert played.used_ns[evil] <= BURST_NS + DEBT_NS + played.now // REFILL_SHARE + _LARGEST_NS
    played.loop.close()
