"""The task channel in virtual time: tasks to their executors, outputs to their origins, leg by leg (MESSIAHS 5.3.3).

A stream of tasks may break, and does when one of its ends dies: its sender is informed, and its tasks may or may not
have arrived, and may or may not have been stored. A copy may arrive late, but only at the process to which it was
sent, and while that lives. Outputs are fetched repeatedly until they arrive; each module on the way is asked for the
next leg, and learns of a leg that fails, also while outputs pass.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from messiahs.config.topology.reach import is_border, is_dialable
from messiahs.core import queries
from messiahs.core.interface.actions import FetchOutputs, RefuseTransfer, SendTasks, TakeOutputs
from messiahs.core.interface.events import Event, TransferFailed, TransferReceived
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.spliced_bytes import FilesSent, InputsMoving
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.interface.transfer_answers import StraightFailed, TransferAnswer, TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.routes import Address, Leg, Splice
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.trust import are_introduced, trust_each_other
from messiahs.core.module import SchedulingModule
from messiahs.sim.world.agenda import Agenda
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.connections import Carried, Host
from messiahs.sim.world.sites import Sited, are_linked, key_of
from messiahs.wire.codec import (
    ReadRequest,
    answer_to_bytes,
    read_request_to_bytes,
    transfer_from_bytes,
    transfer_to_bytes,
)

_LATE_NS = 1 * MINUTE
_FAILURE_NS = 5 * SECOND
_MOVING_NS = 2 * SECOND
"""Interval at which both ends report inputs in transit."""


class TaskHost(Host, Protocol):
    """A host that may run tasks."""

    @property
    def system(self) -> Sited:
        """Its neighbors and the roots of its site."""

    @property
    def module(self) -> SchedulingModule:
        """The state of its daemon; of one that is down, its last state."""

    def answer_read(self, read: "Read | Passing", /) -> "Answer":
        """Return whether outputs are here for a peer, or how it gets them; None without an answer.

        A connection that is to be passed on gets its leg.
        """


class TaskNetwork:
    """Carries tasks and outputs from host to host."""

    def __init__(self, agenda: Agenda, conditions: Conditions, *, hosts: Mapping[SystemId, TaskHost]) -> None:
        self.carried: Carried = lambda _sender, _to, _body: None
        self.passes: Callable[[SystemId], None] = lambda _hop: None
        """Called with each hop that begins to pass tasks or outputs on."""
        self.observed: Carried = lambda _sender, _to, _body: None
        """Called with what is sent beside tasks: requests for outputs, and answers to dropped tasks."""
        self._agenda, self._conditions, self._hosts = agenda, conditions, hosts
        self._sent_to: dict[SystemId, dict[tuple[SystemId, int, ClaimId], None]] = {}
        """The tasks sent to each living daemon: their sender, the life of that sender, and their claim."""
        self._fetches: dict[tuple[SystemId, AttemptId], FetchOutputs] = {}
        """The outputs that each origin is fetching."""

    def send(self, sender: SystemId, action: SendTasks) -> None:
        """Send tasks to their executor, after their inputs."""
        why_not = self._why_not_spliced(sender, action.to, action.address)
        if why_not:
            self._fail(sender, _failure(action, why_not, TransferFailure.BROKEN))
            return
        self._check_way(sender, action.to, action.address)
        self._check_readers(sender, action)
        if not self._is_trusted(sender, action.to):
            untrusted = TransferFailed(
                claim=action.message.claim, text="no root in common", kind=TransferFailure.UNTRUSTED
            )
            self._fail(sender, untrusted)
            return
        # The ids of tasks do not tell: a border gives ids of its own to those that it passes.
        is_origin = (
            queries.live_task(self._hosts[sender].module.state, action.message.tasks[0].attempt.task) is not None
        )
        if not is_origin or action.to != action.message.claim.executor:
            self.passes(action.to if is_origin else sender)
        # Inputs pass all hops at once, before the tasks.
        inputs = [file for task in action.message.tasks for file in task.command.inputs] if is_origin else []
        inputs_ns = self._conditions.up_to(self._conditions.inputs_ns) if inputs else 0
        inputs_ns += self._carrying_ns(sender, action, inputs)
        if inputs_ns:
            self._send_inputs(sender, action, lives=self._lives(sender, action.to), left_ns=inputs_ns)
        else:
            self._send(sender, action)

    def _carrying_ns(self, sender: SystemId, action: SendTasks, inputs: Iterable[InputFile]) -> int:
        """Return how long the links take for inputs, and report it when new ones are there."""
        claim = action.message.claim
        size_bytes, duration_ns = self._conditions.links.carry(sender, claim.executor, inputs, self._agenda.now)
        if size_bytes:
            sent = FilesSent(claim=claim, to=action.to, size_bytes=size_bytes, duration_ns=duration_ns)
            self._post_later(sender, self._hosts[sender].life, sent, delay_ns=duration_ns)
        return duration_ns

    def _send_inputs(self, sender: SystemId, action: SendTasks, *, lives: tuple[int, int], left_ns: int) -> None:
        """Send inputs, and report them at both ends of the path, until they have arrived or the stream fails."""
        conditions = self._conditions
        if not self._hosts[sender].is_up or self._hosts[sender].life != lives[0]:
            return
        is_cut = conditions.is_cut(sender, action.to) or conditions.is_cut(action.to, sender)
        is_broken = self._lives(sender, action.to) != lives or (is_cut and sender != action.to)
        if is_broken or conditions.happens(conditions.failed_inputs):
            is_refused = not is_broken and conditions.happens(50)
            kind = TransferFailure.REFUSED if is_refused else TransferFailure.BROKEN
            self._fail(sender, _failure(action, "an input was refused", kind))
        elif left_ns:
            for system, claim in {sender: action.message.claim, **self._end_of_path(action)}.items():
                self._hosts[system].post(InputsMoving(claim=claim))
            step_ns = min(left_ns, _MOVING_NS)
            send_inputs = partial(self._send_inputs, sender, action, lives=lives, left_ns=left_ns - step_ns)
            self._agenda.later(step_ns, send_inputs)
        else:
            self._send(sender, action)

    def _end_of_path(self, action: SendTasks) -> dict[SystemId, ClaimId]:
        """Return the last system on the path of tasks, with the id by which it knows their claim; empty if it is cut.

        To the origin, a border may stand for that system.
        """
        system, claim = action.to, action.message.claim
        while True:
            host = self._hosts[system]
            claim = queries.claim_beyond(host.module.state, claim)
            leg = queries.present_leg(host.module.state, claim)
            if leg is None or leg.system == system:
                return {system: claim}
            if not host.is_up or self._is_cut(system, leg.system):
                return {}
            system = leg.system

    def _send(self, sender: SystemId, action: SendTasks) -> None:
        body = transfer_to_bytes(action.message)
        self.carried(sender, action.to, body)
        key = key_of(sender)
        received = TransferReceived(sender=sender, message=transfer_from_bytes(body), key=key)
        conditions = self._conditions
        fails = conditions.happens(conditions.failed_transfers)
        failed = _failure(action, "the stream broke", TransferFailure.BROKEN)
        arrive = partial(
            self._arrive, sender, action.to, lives=self._lives(sender, action.to), event=received, failed=failed
        )
        if not fails or conditions.happens(50):
            self._agenda.later(conditions.hop_ns(sender, action.to), arrive)
        if conditions.happens(conditions.repeated_transfers):
            self._agenda.later(conditions.up_to(_LATE_NS), arrive)
        if conditions.happens(conditions.stolen_transfers):
            self._send_stolen(sender, action.to, received)
        if fails:
            self._fail(sender, failed)

    def _send_stolen(self, sender: SystemId, to: SystemId, received: TransferReceived) -> None:
        """Deliver a copy of tasks from another system, which can open a stream to their receiver."""
        thieves = [each for each in sorted(self._hosts) if each not in (sender, to)]
        thieves = [each for each in thieves if self._is_trusted(each, to) and self._has_way(each, to)]
        if thieves:
            thief = self._conditions.random.choice(thieves)
            event = replace(received, sender=thief, key=key_of(thief))
            self._post_later(to, self._hosts[to].life, event, delay_ns=self._conditions.hop_ns(thief, to))

    def refuse(self, sender: SystemId, action: RefuseTransfer) -> None:
        """Answer a system that tasks which it sent were dropped, if it still lives."""
        answer = TransferAnswer(claim=action.claim, problem=action.text, kind=action.kind)
        if self._are_linked(sender, action.to):
            # A thief has dialed where a firewall would be.
            self.observed(sender, action.to, answer_to_bytes(answer))
        failed = TransferFailed(claim=action.claim, text=action.text, kind=action.kind, to=sender)
        life, conditions = self._hosts[action.to].life, self._conditions
        if not conditions.is_cut(sender, action.to):
            self._post_later(action.to, life, failed, delay_ns=conditions.hop_ns(sender, action.to))

    def fetch(self, origin: SystemId, action: FetchOutputs) -> None:
        """Fetch outputs, and post the result to the origin."""
        self._fetches[origin, action.attempt] = action
        fetch = _Fetch(origin, self._hosts[origin].life, action)
        first = Onward(action.leg, action.claim, action.attempt)
        self._agenda.later(self._hop_ns(origin, action.leg.system), partial(self._ask, fetch, origin, first))

    def take(self, origin: SystemId, action: TakeOutputs) -> None:
        """Let what a simulated task wants of others be there; it has no bytes."""
        wanted = (output for dependency in action.after for output in dependency.outputs)
        inputs = tuple(InputFile(name=each.to, sha256=b"", size_bytes=0, is_folder=True) for each in wanted)
        self._hosts[origin].post(OutputsTaken(submission=action.submission, inputs=inputs))

    def end_fetch(self, origin: SystemId, attempt: AttemptId) -> None:
        """Stop fetching outputs; no event follows."""
        self._fetches.pop((origin, attempt), None)

    def end_of(self, system: SystemId) -> None:
        """Break all streams to a daemon that has just ended, with everything ever sent on them."""
        for sender, life, claim in self._sent_to.pop(system, {}):
            if self._hosts[sender].life == life:
                self._fail(sender, TransferFailed(claim=claim, text=f"{system} has gone", to=system))

    def _arrive(
        self, sender: SystemId, to: SystemId, /, *, lives: tuple[int, int], event: Event, failed: TransferFailed
    ) -> None:
        host = self._hosts[to]
        if host.is_up and host.life == lives[1] and not self._conditions.is_cut(sender, to):
            self._sent_to.setdefault(to, {})[sender, lives[0], failed.claim] = None
            host.post(event)
        elif self._hosts[sender].life == lives[0]:
            self._fail(sender, failed)

    def _fail(self, sender: SystemId, failed: TransferFailed) -> None:
        self._post_later(sender, self._hosts[sender].life, failed, delay_ns=self._conditions.up_to(_FAILURE_NS))

    def _ask(self, fetch: "_Fetch", peer: SystemId, onward: "Onward") -> None:
        """Ask the system at the end of a leg for outputs, and the next one if it passes them on."""
        action, leg = fetch.action, onward.leg
        if self._fetches.get((fetch.origin, action.attempt)) is not action:
            return
        self._check_way(peer, leg.system, leg.address)
        host = self._hosts[leg.system]
        fetch = fetch._replace(way=(*fetch.way, _Step(peer, leg.system, host.life, onward.claim)))
        is_closed = not isinstance(leg.address, Splice) and self._is_walled(peer, leg.system)
        is_closed = is_closed or not self._is_trusted(peer, leg.system) or self._is_cut(peer, leg.system)
        is_closed = is_closed or bool(self._why_not_spliced(peer, leg.system, leg.address))
        if not is_closed:
            self.observed(peer, leg.system, read_request_to_bytes(_read_request(onward)))
        answer = None if is_closed else host.answer_read(Read(peer, *onward))
        if answer is None or self._conditions.happens(self._conditions.failed_fetches):
            self._answer(fetch, leg, self._broken(fetch, fetch.way[-1]))
        elif isinstance(answer, Onward):
            self.passes(leg.system)
            next_one = answer.leg.system
            self._agenda.later(self._hop_ns(leg.system, next_one), partial(self._ask, fetch, leg.system, answer))
        elif answer is True:
            passing_ns = self._conditions.up_to(self._conditions.outputs_ns)
            self._agenda.later(passing_ns, partial(self._arrive_home, fetch, leg))
        else:
            self._answer(fetch, leg, fetch.failed("nothing is left there", is_gone=True))

    def _arrive_home(self, fetch: "_Fetch", leg: Leg) -> None:
        """Let outputs arrive, unless a system or a connection on their way broke in the meantime."""
        event: Event = OutputsHome(attempt=fetch.action.attempt)
        for step in fetch.way:
            if self._hosts[step.system].life != step.life or self._is_cut(step.peer, step.system):
                event = self._broken(fetch, step)
                break
        self._answer(fetch, leg, event)

    def _broken(self, fetch: "_Fetch", step: "_Step") -> OutputsFailed:
        """Let a peer know that it does not reach a system, and return the failure for the origin."""
        text = f"{step.system} cannot be reached"
        self._post_now(step.peer, self._hosts[step.peer].life, StraightFailed(claim=step.claim, text=text))
        return fetch.failed(text)

    def _answer(self, fetch: "_Fetch", leg: Leg, event: Event) -> None:
        answer_fetch = partial(self._answer_fetch, fetch, event)
        self._agenda.later(self._hop_ns(fetch.origin, leg.system), answer_fetch)

    def _answer_fetch(self, fetch: "_Fetch", event: Event) -> None:
        if self._fetches.get((fetch.origin, fetch.action.attempt)) is fetch.action:
            del self._fetches[fetch.origin, fetch.action.attempt]
            self._post_now(fetch.origin, fetch.life, event)

    def _post_later(self, system: SystemId, life: int, event: Event, *, delay_ns: int) -> None:
        self._agenda.later(delay_ns, partial(self._post_now, system, life, event))

    def _post_now(self, system: SystemId, life: int, event: Event) -> None:
        if self._hosts[system].is_up and self._hosts[system].life == life:
            self._hosts[system].post(event)

    def _hop_ns(self, one: SystemId, other: SystemId) -> int:
        return self._conditions.hop_ns(one, other) if one != other else 0

    def _is_walled(self, one: SystemId, other: SystemId) -> bool:
        are_neighbors = self._are_linked(one, other)
        return self._conditions.is_walled(one, other) and not are_neighbors

    def _why_not_spliced(self, one: SystemId, other: SystemId, address: Address) -> str:
        """Return why modules of third sites do not pass a connection on; empty if they do, or if there are none."""
        if not isinstance(address, Splice):
            return ""
        while isinstance(address, Splice):
            self.passes(address.hop)
            is_cut = self._is_cut(one, address.hop)
            leg = None if is_cut else self._hosts[address.hop].answer_read(Passing(one, address))
            if not isinstance(leg, Leg):
                return f"{address.hop} passes no connection on"
            assert leg.system == other, f"{address.hop} leads to {leg.system} instead of {other}"
            one, address = address.hop, leg.address
        return f"{other} cannot be reached" if self._is_cut(one, other) else ""

    def _check_way(self, one: SystemId, other: SystemId, address: Address) -> None:
        is_open = isinstance(address, Splice) or self._has_way(one, other)
        assert is_open, f"{one} sends bytes to {other}, which nobody can dial"

    def _check_readers(self, sender: SystemId, action: SendTasks) -> None:
        """Check that nobody else sees tasks that pass between two sites which were introduced to each other.

        Borders may stand for systems of other sites.
        """
        if any(is_border(host.system) for host in self._hosts.values()):
            return
        ends = action.message.tasks[0].attempt.task.system, action.message.claim.executor
        one, other = (self._hosts[end].system.trust for end in ends)
        reader = self._hosts[action.to].system.trust
        is_third = set(reader.vouchers).isdisjoint((*one.vouchers, *other.vouchers))
        assert not (is_third and are_introduced(one, other)), f"{sender} shows tasks of {ends} to {action.to}"

    def _has_way(self, one: SystemId, other: SystemId) -> bool:
        return self._are_linked(one, other) or is_dialable(self._hosts[other].system)

    def _is_cut(self, one: SystemId, other: SystemId) -> bool:
        return one != other and any(self._conditions.is_cut(*way) for way in ((one, other), (other, one)))

    def _is_trusted(self, one: SystemId, other: SystemId) -> bool:
        trust, others = self._hosts[one].system.trust, self._hosts[other].system.trust
        return self._are_linked(one, other) or trust_each_other(trust, others)

    def _are_linked(self, one: SystemId, other: SystemId) -> bool:
        """Return whether two systems are neighbors, in the topology or since; one end of a link can dial the other."""
        is_new = other in queries.neighbors_of(self._hosts[one].module.state)
        return is_new or are_linked(self._hosts[one].system, self._hosts[other].system)

    def _lives(self, one: SystemId, other: SystemId) -> tuple[int, int]:
        return self._hosts[one].life, self._hosts[other].life


class Onward(NamedTuple):
    """The leg on which the next system is asked for outputs, with the ids that it knows."""

    leg: Leg
    claim: ClaimId
    attempt: AttemptId


Answer = Onward | Leg | bool | None


class Read(NamedTuple):
    """A peer reads outputs on a leg that ends here."""

    peer: SystemId
    leg: Leg
    claim: ClaimId
    attempt: AttemptId


class Passing(NamedTuple):
    """A peer opens a connection that is to be passed on."""

    peer: SystemId
    splice: Splice


class _Step(NamedTuple):
    """A peer reads from a life of a system, in a claim by the id that it got."""

    peer: SystemId
    system: SystemId
    life: int
    claim: ClaimId


class _Fetch(NamedTuple):
    """Outputs that a life of an origin is fetching, and the systems that were asked on their way."""

    origin: SystemId
    life: int
    action: FetchOutputs
    way: tuple[_Step, ...] = ()

    def failed(self, text: str, *, is_gone: bool = False) -> OutputsFailed:
        """Return the event for outputs that were not fetched."""
        return OutputsFailed(attempt=self.action.attempt, leg=self.action.leg, text=text, is_gone=is_gone)


def _read_request(onward: Onward) -> ReadRequest:
    return ReadRequest(claim=onward.claim, ticket=onward.leg.ticket, attempt=onward.attempt, name="stdout")


def _failure(action: SendTasks, text: str, kind: TransferFailure) -> TransferFailed:
    return TransferFailed(claim=action.message.claim, text=text, kind=kind, to=action.to)
