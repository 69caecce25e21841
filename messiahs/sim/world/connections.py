"""Connections between neighbors in virtual time: control and update channel (MESSIAHS 5.3.1, 5.3.2).

Messages of a connection arrive in order until it breaks; later ones are lost in both directions. Each end learns of a
break, and of a new connection, at a time of its own. Where the network is cut, messages wait; if the cut lasts, the
connection breaks. Messages of one connection never arrive on another.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from messiahs.core.interface.events import ControlReceived, Event, LinkDown, LinkUp, VectorReceived
from messiahs.core.interface.messages import ControlMessage, StatusVector
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.sim.world.agenda import Agenda
from messiahs.sim.world.conditions import Conditions
from messiahs.wire.codec import control_from_bytes, control_to_bytes, status_vector_from_bytes, status_vector_to_bytes

_RETRY_NS = 1 * SECOND
_RESET_NS = 100 * MILLISECOND
"""Longest time after which a neighbor learns that a process has ended while its machine continues."""
_SILENCE_NS = 20 * SECOND
"""Longest time after which an end notices that nothing arrives any more."""

Pair = tuple[SystemId, SystemId]
Carried = Callable[[SystemId, SystemId, bytes], None]
"""Called with every message sent: sender, receiver, and bytes."""


class Host(Protocol):
    """The host of a module, as the network uses it; `life` counts the starts of its daemon."""

    life: int

    @property
    def is_up(self) -> bool:
        """Whether its daemon is up."""

    def post(self, event: Event) -> None:
        """Post an event to its module, which handles it as soon as possible."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection (mutable); `dialer` opened it."""

    dialer: SystemId
    acceptor: SystemId
    lives: tuple[int, int]
    arrived_until: dict[SystemId, Instant] = field(default_factory=dict)
    """When the last message to an end arrives."""
    lost_from: dict[SystemId, Instant] = field(default_factory=dict)
    """When not empty, the connection is broken: messages that reach an end at this time or later are lost."""
    held: dict[SystemId, list[Event]] = field(default_factory=dict)
    """Messages for an end that has not opened the connection yet, or that a cut delays."""

    def other(self, end: SystemId) -> SystemId:
        """Return the far end."""
        return self.acceptor if end == self.dialer else self.dialer


class Connections:
    """All connections, by the ends that hold them (mutable)."""

    def __init__(
        self, agenda: Agenda, conditions: Conditions, *, hosts: Mapping[SystemId, Host], dials: Mapping[Pair, bool]
    ) -> None:
        self.carried: Carried = lambda _sender, _to, _body: None
        self._agenda, self._conditions, self._hosts = agenda, conditions, hosts
        self._configured = tuple(pair for pair, is_dialer in dials.items() if is_dialer)
        self._pairs_of: dict[SystemId, list[Pair]] = {}
        """The pairs of dialer and acceptor that include a system."""
        for pair in self._configured:
            self._keep(pair)
        self._attached: dict[Pair, Connection] = {}
        self._is_trying: dict[Pair, bool] = {}
        self._shut_off: dict[Pair, None] = {}
        """Hosts with the neighbors that they refuse."""

    def start(self, system: SystemId, *, refused: Iterable[SystemId] = ()) -> None:
        """Connect a host that has just started to those neighbors that are up, without those that it refuses."""
        self._shut_off.update(dict.fromkeys((system, each) for each in refused))
        for dialer, acceptor in self._pairs_of.get(system, ()):
            self._try(dialer, acceptor)

    def configure(self, system: SystemId) -> None:
        """Let a host that starts dial the neighbors of its topology file, and no others before `link`."""
        for pair in [pair for pair in self._pairs_of.get(system, ()) if pair[0] == system]:
            self._forget(pair)
        for pair in self._configured:
            if pair[0] == system:
                self._keep(pair)

    def send_control(self, sender: SystemId, to: SystemId, /, message: ControlMessage) -> None:
        """Send a message; without a connection it is lost."""
        connection = self._attached.get((sender, to))
        if connection is None:
            return
        body = control_to_bytes((message,))
        self.carried(sender, to, body)
        for received in control_from_bytes(body):
            event = ControlReceived(sender=sender, message=received)
            self._carry(connection, to, event)
            if self._conditions.happens(self._conditions.repeated_control):
                self._carry(connection, to, event)

    def send_vector(self, sender: SystemId, to: SystemId, /, message: StatusVector) -> None:
        """Send a vector, which may be lost or overtaken."""
        connection = self._attached.get((sender, to))
        if connection is None:
            return
        body = status_vector_to_bytes(message)
        self.carried(sender, to, body)
        if self._conditions.happens(self._conditions.lost_vectors):
            return
        event = VectorReceived(sender=sender, message=status_vector_from_bytes(body))
        self._agenda.later(self._conditions.hop_ns(sender, to), partial(self._arrive_vector, connection, to, event))

    def drop(self, system: SystemId, neighbor: SystemId) -> None:
        """End a connection at the request of one end."""
        connection = self._attached.get((system, neighbor))
        if connection is not None:
            self._lose(connection)
            self._notice(connection, system)
            self._agenda.later(self._conditions.hop_ns(system, neighbor), partial(self._notice, connection, neighbor))

    def admit(self, system: SystemId, neighbor: SystemId, *, is_off: bool) -> None:
        """Let a host and its neighbor connect; if `is_off`, end their connection, and open no other until then."""
        if is_off:
            self._shut_off[system, neighbor] = None
            self.drop(system, neighbor)
        else:
            self._shut_off.pop((system, neighbor), None)
            self.start(system)

    def link(self, system: SystemId, neighbor: SystemId, *, dials: bool) -> None:
        """Let a host dial a neighbor from now on, if it is the one that does."""
        if dials:
            self._keep((system, neighbor))
        self.start(system)

    def unlink(self, system: SystemId, neighbor: SystemId) -> None:
        """Let a host dial a neighbor no more, and end their connection when its last messages have arrived."""
        self._forget((system, neighbor))
        connection = self._attached.get((system, neighbor))
        if connection is None:
            return
        last = connection.arrived_until.get(neighbor, self._agenda.now)
        self._notice(connection, system)
        self._agenda.later(max(0, last - self._agenda.now), partial(self._end_of_unlinked, connection, neighbor))

    def _end_of_unlinked(self, connection: Connection, neighbor: SystemId) -> None:
        if not connection.lost_from:
            self._lose(connection)
        delay_ns = self._conditions.hop_ns(connection.other(neighbor), neighbor)
        self._agenda.later(delay_ns, partial(self._notice, connection, neighbor))

    def break_between(self, one: SystemId, other: SystemId) -> None:
        """Break a connection, if there is one; its ends notice independently."""
        for connection in {
            id(c): c for pair in ((one, other), (other, one)) if (c := self._attached.get(pair))
        }.values():
            self._break(connection, _SILENCE_NS)

    def end_of(self, system: SystemId, *, with_machine: bool) -> None:
        """Break all connections of a host whose daemon has just ended; neighbors of a dead machine notice late."""
        for pair in [pair for pair in self._shut_off if pair[0] == system]:
            del self._shut_off[pair]
        for pair in [pair for pair in self._attached if pair[0] == system]:
            connection = self._attached.pop(pair)
            self._break(connection, _SILENCE_NS if with_machine else _RESET_NS)

    def cut(self, pairs: tuple[Pair, ...]) -> None:
        """Block messages in some directions: they wait, and connections break if that lasts."""
        self._conditions.cut(pairs)
        for sender, receiver in pairs:
            connection = self._attached.get((sender, receiver))
            if connection is not None:
                self._agenda.later(self._conditions.up_to(_SILENCE_NS), partial(self._time_out, connection))

    def mend(self, pairs: tuple[Pair, ...]) -> None:
        """Remove one cut of each direction; waiting messages arrive now."""
        for sender, receiver in self._conditions.mend(pairs):
            connection = self._attached.get((receiver, sender))
            if connection is not None and not connection.lost_from:
                self._release(connection, receiver)

    def _keep(self, pair: Pair) -> None:
        for end in pair:
            pairs = self._pairs_of.setdefault(end, [])
            if pair not in pairs:
                pairs.append(pair)

    def _forget(self, pair: Pair) -> None:
        for end in pair:
            pairs = self._pairs_of.get(end, [])
            if pair in pairs:
                pairs.remove(pair)

    def _try(self, dialer: SystemId, acceptor: SystemId) -> None:
        """Open a connection unless there is one, or try again a little later."""
        is_dialed = (dialer, acceptor) in self._pairs_of.get(dialer, ())
        if not is_dialed or not self._hosts[dialer].is_up or (dialer, acceptor) in self._attached:
            return
        is_cut = self._conditions.is_cut(dialer, acceptor) or self._conditions.is_cut(acceptor, dialer)
        is_cut = is_cut or (dialer, acceptor) in self._shut_off or (acceptor, dialer) in self._shut_off
        if is_cut or not self._hosts[acceptor].is_up:
            if not self._is_trying.get((dialer, acceptor)) and self._hosts[dialer].is_up:
                self._is_trying[dialer, acceptor] = True
                self._agenda.later(_RETRY_NS, partial(self._try_again, dialer, acceptor))
            return
        lives = (self._hosts[dialer].life, self._hosts[acceptor].life)
        connection = Connection(dialer=dialer, acceptor=acceptor, lives=lives)
        # The acceptor learns of the connection first; both do before the first message.
        self._open(connection, dialer)
        delay_ns = self._conditions.hop_ns(dialer, acceptor) if self._conditions.spread_ns else 0
        self._agenda.later(delay_ns, partial(self._open, connection, acceptor))

    def _try_again(self, dialer: SystemId, acceptor: SystemId) -> None:
        self._is_trying[dialer, acceptor] = False
        self._try(dialer, acceptor)

    def _open(self, connection: Connection, end: SystemId) -> None:
        other = connection.other(end)
        life = connection.lives[0] if end == connection.dialer else connection.lives[1]
        if connection.lost_from:
            return
        if not self._hosts[end].is_up or self._hosts[end].life != life:
            # The dialer, which is attached already, learns that this end is down.
            self._break(connection, _RESET_NS)
            return
        old = self._attached.get((end, other))
        if old is not None:
            # It was half open: the other end has noticed its end, and has reconnected.
            self._notice(old, end)
        self._attached[end, other] = connection
        self._hosts[end].post(LinkUp(neighbor=other))
        if not self._conditions.is_cut(other, end):
            self._release(connection, end)

    def _carry(self, connection: Connection, to: SystemId, event: Event) -> None:
        arrives_at = Instant(self._agenda.now + self._conditions.hop_ns(connection.other(to), to))
        arrives_at = max(arrives_at, connection.arrived_until.get(to, arrives_at))
        connection.arrived_until[to] = arrives_at
        self._agenda.later(arrives_at - self._agenda.now, partial(self._arrive, connection, to, event))

    def _arrive(self, connection: Connection, to: SystemId, event: Event) -> None:
        lost_from = connection.lost_from.get(to)
        if lost_from is not None and self._agenda.now >= lost_from:
            return
        sender = connection.other(to)
        if self._conditions.is_cut(sender, to) or connection.held.get(to):
            connection.held.setdefault(to, []).append(event)
            return
        attached = self._attached.get((to, sender))
        if attached is connection:
            self._hosts[to].post(event)
        elif not connection.lost_from and to == connection.acceptor:
            connection.held.setdefault(to, []).append(event)

    def _release(self, connection: Connection, end: SystemId) -> None:
        held = connection.held.pop(end, [])
        for event in held:
            if self._attached.get((end, connection.other(end))) is connection:
                self._hosts[end].post(event)

    def _arrive_vector(self, connection: Connection, to: SystemId, event: Event) -> None:
        is_held = self._attached.get((to, connection.other(to))) is connection
        if is_held and not connection.lost_from and not self._conditions.is_cut(connection.other(to), to):
            self._hosts[to].post(event)

    def _time_out(self, connection: Connection) -> None:
        ends = (connection.dialer, connection.acceptor)
        if self._conditions.is_cut(*ends) or self._conditions.is_cut(*reversed(ends)):
            self._break(connection, _SILENCE_NS)

    def _break(self, connection: Connection, silence_ns: int) -> None:
        if connection.lost_from:
            return
        self._lose(connection)
        for end in (connection.dialer, connection.acceptor):
            self._agenda.later(self._conditions.up_to(silence_ns), partial(self._notice, connection, end))

    def _lose(self, connection: Connection) -> None:
        for end in (connection.dialer, connection.acceptor):
            hop_ns = self._conditions.hop_ns(connection.other(end), end)
            connection.lost_from[end] = Instant(self._agenda.now + self._conditions.up_to(hop_ns))
        connection.held.clear()

    def _notice(self, connection: Connection, end: SystemId) -> None:
        """Inform an end that its connection has ended; the dialer reconnects."""
        other = connection.other(end)
        if self._attached.get((end, other)) is not connection:
            return
        del self._attached[end, other]
        self._hosts[end].post(LinkDown(neighbor=other))
        if end == connection.dialer:
            self._agenda.later(self._conditions.up_to(_RETRY_NS), partial(self._try, end, other))
