"""The workload of a swarm run: the submits, cancels and retries of its users, drawn from the seed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import GPUS
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.sim.load.input_sizes import described
from messiahs.sim.load.users import Order

_GIB: Final = 1 << 30
_INPUT: Final = InputFile(name="input", sha256=bytes(32), size_bytes=_GIB)
USERS: Final = ("account-ann", "account-bob")
_SHORT_NS: Final = 500 * MILLISECOND
"""Arrays of thousands consist of tasks with at most this mean run time."""
_SMALL: Final = 20
"""The members of the largest array of which only some may run at once: one after the other, others take too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBook:
    """The common parameters of the orders of one run."""

    origins: Sequence[SystemId]
    machines: Sequence[SDV]
    is_certain: bool
    """Whether every machine can be reached from everywhere, and accepts every task that it has room for."""
    requirement: str
    """Of some tasks: true of every machine, and refused by no border."""
    until_ns: int
    mean_run_ns: int
    gpus: int = 0
    """GPUs of every machine, which some tasks use."""

    def draw(self, random: Random, uses: Random, /) -> list[Order]:
        """Draw all orders; `uses` is for the counted things of their tasks."""
        orders = [self._order(random, number) for number in range(random.randrange(2, 9))]
        if self.mean_run_ns <= _SHORT_NS and random.randrange(8) == 0:
            orders.append(self._order(random, len(orders), thousands=random.randrange(1_300, 3_000)))
        return [self._with_gpus(order, uses.randrange(self.gpus + 1)) for order in orders]

    def _order(self, random: Random, number: int, *, thousands: int = 0) -> Order:
        system = random.choice(self.origins)
        members = thousands or random.choice((0, 2, 5, 12, 20))
        is_patient = self.is_certain and random.randrange(8) > 0
        at_ns = random.randrange(self.until_ns)
        event = Submitted(
            answer_to=AnswerTo(0),
            key=ClientKey(f"order-{number}"),
            tdv=self._tdv(random, system),
            requirement=random.choice(("", "", self.requirement)),
            command=Command(argv=("true",), inputs=() if thousands else random.choice(((), (), (_INPUT,)))),
            members=members,
            retries=random.choice((0, 0, 2)),
            waits=random.randrange(8) > 0,
            deadline_ns=None if is_patient else random.randrange(5, 300) * SECOND,
        )
        event = replace(event, tdv=described(event.tdv, event.command.inputs, own=()))
        order = Order(system=system, event=event, at_ns=at_ns, is_certain=self.is_certain)
        match random.randrange(10):
            case 0 | 1:
                order.cancelled_at_ns = at_ns + random.randrange(30) * SECOND
                order.cancelled_member = random.randrange(members + 1)
            case 2 | 3 | 4 if self.is_certain or not event.waits:
                # A retry has no deadline: a task that no machine accepts would wait forever.
                order.retried_at_ns = at_ns + random.randrange(120) * SECOND
                order.retried_member = random.choice((0, random.randrange(members + 1)))
        return order

    def _with_gpus(self, order: Order, gpus: int) -> Order:
        if gpus:
            stated = dict(order.event.tdv.pairs) | {GPUS: gpus}
            order.event = replace(order.event, tdv=TDV(sorted_pairs(stated)))
        return order

    def _tdv(self, random: Random, origin: SystemId) -> TDV:
        """Draw needs that one of the machines meets when it is idle."""
        machine = random.choice(self.machines)
        tdv: dict[str, Value] = {"cpus": 1, "origin": origin, "user": random.choice(USERS)}
        if random.randrange(4) == 0:
            tdv["cpus"] = min(_amount(machine, "slots"), random.choice((2, 4)))
        if random.randrange(3) == 0:
            tdv["mem"] = random.choice((1, 2)) * _GIB
        if random.randrange(6) == 0:
            tdv["disk"] = random.randrange(1, _amount(machine, "total_disk") // _GIB + 1) * _GIB
        if random.randrange(5) == 0:
            tdv["est_time"] = random.choice((2, 20))
        return TDV(sorted_pairs(tdv))


def limited(random: Random, orders: list[Order]) -> list[Order]:
    """Let at most some members of some arrays run at once."""
    for order in orders:
        at_once = random.choice((0, 0, 1, 2, 5))
        if order.event.waits and 1 < order.event.members <= _SMALL:
            order.event = replace(order.event, at_once=at_once)
    return orders


def _amount(machine: SDV, name: str) -> int:
    value = machine.description()[name]
    assert isinstance(value, int), "machines of the swarm report their sizes"
    return value
