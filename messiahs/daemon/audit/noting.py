"""The decisions in one step of the core, found in its event and its actions."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from messiahs.core import queries
from messiahs.core.executor.local_ids import attempt_row, remembered_claim
from messiahs.core.interface.actions import (
    Action,
    Decision,
    EndAttempt,
    Report,
    SendControl,
    StartAttempt,
    Store,
)
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ControlReceived, Event, TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedDeny, TaskDeny, TaskState
from messiahs.core.interface.policies import Act as OwnersAct
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, Row, SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.terms import terms_text
from messiahs.daemon.audit.acts import Act, act_of
from messiahs.daemon.audit.entries import OF_MODULE, Caller, Entry, Kind, of_neighbor, of_user
from messiahs.trace.record.recorder import RecordedModule

_MEMBERS: Final = frozenset(
    {
        "shut_off",
        "readmitted",
        "handover",
        "cycle",
        "announced",
        "drained",
        "undrained",
        "lend",
        "neighbor_leaves",
        "neighbor_removed",
        "neighbor_added",
    }
)
_OF_ORIGIN: Final = frozenset({*(state.value for state in TaskState), Cause.TIME_LIMIT.value, "unreachable"})
_OF_OWNER: Final = frozenset({*(act.value for act in OwnersAct), Cause.REVOKED.value, Cause.VACATED.value})
_SAID_BY_OWNER: Final = (Cause.VACATED, Cause.REVOKED)
"""Ends that have a line with the owner's reason."""
_USERS_LIMIT: Final = 4_096
_ROUTE: Final = "route"
"""The way of a task's bytes, which decides nothing about it."""
_BY_HAND: Final = " by hand"
_NAMED: Final = re.compile(r"([0-9]{1,18})(?:\.[0-9]+)?")


class Noted(NamedTuple):
    """A decision, and the task that it is about; empty if it is about none, or names it elsewhere."""

    entry: Entry
    task: str = ""


class Whose(NamedTuple):
    """Whose a task is: the user as its origin names it, the origin, and the neighbor that brought it (empty: none)."""

    user: str = ""
    origin: str = ""
    neighbor: str = ""

    @property
    def source(self) -> str:
        """Who bears the size of what is decided about it."""
        if self.neighbor:
            return of_neighbor(self.neighbor)
        return of_user(self.user) if self.user else OF_MODULE

    def named_in(self, entry: Entry) -> Entry:
        """Return a decision about it that somebody else bears."""
        return entry._replace(neighbor=self.neighbor, origin=self.origin, user=self.user)

    def entry(self, what: str, *, about: str = "", code: str = "", why: str = "") -> Entry:
        """Return a decision about it."""
        return Entry(
            Kind.TASK, what, self.source, None, self.neighbor, self.origin, self.user, about=about, code=code, why=why
        )


class Noter:
    """Finds decisions; remembers whose the latest tasks are, since rows of tasks do not say that (mutable)."""

    def __init__(self, module: RecordedModule) -> None:
        self._module = module
        self._own = queries.system_of(module.state)
        self._users: dict[TaskId, str] = {}
        self._attempts: dict[str, AttemptRow] = {}
        """The attempts at the own machine whose rows the present step stores, by the names that decisions use."""
        self._leaving: dict[AttemptId, Whose] = {}
        """Whose the attempts at the own machine are that are being ended: their claim may be forgotten before them."""
        self._seen: set[object] = set()
        self._seen_at = Instant(0)

    def of_step(
        self, event: Event | None, actions: tuple[Action, ...], now: Instant, /, *, by: Caller | None = None
    ) -> Iterator[Noted]:
        """Yield the decisions of a step, in order; `by` is the user who asked for it."""
        if isinstance(event, AttemptStarted):
            yield from self._of_attempt("started", event.attempt)
        if not actions:
            return
        sender = ""
        if isinstance(event, ControlReceived | TransferReceived) and event.sender != self._own:
            sender = event.sender
        said: frozenset[str] = frozenset()
        self._note_rows(actions)
        if isinstance(event, ControlReceived):
            yield from self._of_message(event)
        elif event is not None:
            act = act_of(event, actions, by=by)
            if act is not None:
                said = act.said
                yield from self._of_act(act)
        if now != self._seen_at:
            self._seen_at = now
            self._seen.clear()
        granted: GrantedClaimRow | None = None
        for action in actions:
            match action:
                case Store(row=row):
                    granted = row if isinstance(row, GrantedClaimRow) else granted
                    yield from self._of_row(row, sender, now)
                case Decision(what="sched_accept"):
                    if granted is not None and granted.via != self._own:
                        yield Noted(self._of_grant(granted))
                case Decision(what=what):
                    if what not in said:
                        yield from self._of_decision(action, sender)
                case SendControl() | StartAttempt() | EndAttempt() | Report():
                    yield from self._of_effect(action)
                case _:
                    pass

    def _of_message(self, event: ControlReceived) -> Iterator[Noted]:
        if isinstance(event.message, SchedDeny | TaskDeny):
            yield Noted(_counted("denied_there", event.sender, code=_reason_of(event.message)[0]))

    def _note_rows(self, actions: tuple[Action, ...]) -> None:
        """Remember what the rows of a step say about whose tasks are: its decisions may come before them."""
        self._attempts.clear()
        for action in actions:
            match action:
                case Store(row=SubmissionRow() as row):
                    self._note_user(row.id, row.tdv)
                case Store(row=AttemptRow() as row):
                    self._attempts.setdefault(str(row.id), row)
                case _:
                    pass

    def _of_act(self, act: Act) -> Iterator[Noted]:
        for attempt in act.attempts:
            row = attempt_row(self._module.state, attempt)
            whose = self._whose_attempt(row) if row is not None else Whose()
            yield Noted(whose.named_in(act.entry), str(attempt))
        if act.attempts:
            return
        user = self._user_of(act.task) if act.task is not None else ""
        entry = act.entry._replace(origin=self._own, user=user) if user else act.entry
        for task in act.tasks or ("",):
            yield Noted(entry, task)

    def _of_row(self, row: Row, sender: str, now: Instant) -> Iterator[Noted]:
        match row:
            case TaskRow():
                yield from self._of_task(row, sender, now)
            case AttemptRow() if row.status.state is not TaskState.EXECUTING:
                yield from self._of_end(row)
            case _:
                pass

    def _of_task(self, row: TaskRow, sender: str, now: Instant) -> Iterator[Noted]:
        """Yield what was added in this instant to the history of an own task."""
        fresh = []
        for each in reversed(row.history):
            if each.at != now:
                break
            fresh.append(each)
        if not fresh:
            return
        user, name = self._user_of(row.id), str(row.id)
        source = of_neighbor(sender) if sender else of_user(user)
        for each in reversed(fresh):
            key = (name, each.event, each.attempt)
            if each.event == _ROUTE or each.event.endswith(_BY_HAND) or key in self._seen:
                continue
            self._seen.add(key)
            neighbor = each.module if each.module != self._own else ""
            entry = Entry(Kind.TASK, each.event, source, None, neighbor, self._own, user, why=each.text)
            yield Noted(entry, f"{name}#{each.attempt}")
            if each.event in _OF_ORIGIN:
                self._seen.add((name, each.event))

    def _of_end(self, row: AttemptRow) -> Iterator[Noted]:
        """Yield the end of an attempt of another origin on the own machine, or that it is refused."""
        whose = self._leaving.pop(row.id, None) or self._whose_attempt(row)
        if whose.origin == self._own:
            return
        status = row.status
        how = f"exit code {status.exit_code}" if status.exit_code is not None else ""
        signal = f"signal {status.signal}" if status.signal is not None else ""
        is_refused = status.state is TaskState.DENIED
        why = ": ".join(filter(None, (status.cause or how or signal, status.text)))
        entry = whose.entry("refused" if is_refused else "ended", code=status.state, why=why)
        yield Noted(entry._replace(is_counted=is_refused), str(row.named))

    def _of_grant(self, claim: GrantedClaimRow) -> Entry:
        whose = Whose(str(claim.tdv.description().get("user", "")), claim.origin, claim.via)
        terms = terms_text(claim.account, claim.network)
        return whose.entry("accepted", about=f"{claim.places} places in claim {claim.id}{terms}")

    def _of_attempt(self, what: str, attempt: AttemptId, /, *, why: str = "") -> Iterator[Noted]:
        row = attempt_row(self._module.state, attempt)
        if row is not None:
            yield Noted(self._whose_attempt(row).entry(what, why=why), str(row.named))

    def _of_ending(self, action: EndAttempt) -> Iterator[Noted]:
        """Yield that an attempt is told to end, once of all that the instant says about it."""
        if (action.attempt, "ending") not in self._seen:
            self._seen.add((action.attempt, "ending"))
            row = attempt_row(self._module.state, action.attempt)
            if row is not None:
                whose = self._leaving[row.id] = self._whose_attempt(row)
                yield Noted(whose.entry("ending", why=action.cause), str(row.named))

    def _of_decision(self, decision: Decision, sender: str) -> Iterator[Noted]:
        what, about = decision.what, decision.task
        if what in _MEMBERS:
            source = of_neighbor(sender) if sender else OF_MODULE
            neighbor = about if about != self._own else ""
            yield Noted(Entry(Kind.MEMBER, what, source, None, neighbor, about=about, why=decision.text))
        elif what in _OF_OWNER:
            row = self._attempts.get(about)
            whose = self._whose_attempt(row) if row is not None else Whose()
            yield Noted(whose.named_in(Entry(Kind.TASK, what, OF_MODULE, None, why=decision.text)), about)
        elif what in _OF_ORIGIN and (about, what) not in self._seen:
            user = self._user_of_named(about)
            source = of_neighbor(sender) if sender else of_user(user)
            yield Noted(Entry(Kind.TASK, what, source, None, "", self._own, user, why=decision.text), about)

    def _of_effect(self, action: SendControl | StartAttempt | EndAttempt | Report) -> Iterator[Noted]:
        match action:
            case SendControl(to=to, message=SchedDeny() | TaskDeny() as deny):
                code, why = _reason_of(deny)
                yield Noted(_counted("denied", to, code=code, why=why))
            case SendControl(to=to, message=SchedAccept() as accept) if accept.claim.executor != self._own:
                yield Noted(Entry(Kind.TASK, "passed_on", of_neighbor(to), None, to, about=f"claim {accept.claim}"))
            case StartAttempt():
                whose = self._whose(action.claim)
                if whose.neighbor:
                    # The origin of an own task has said that it is bound.
                    yield from self._of_attempt("taken", action.attempt)
            case EndAttempt() if action.cause not in _SAID_BY_OWNER:
                yield from self._of_ending(action)
            case Report():
                yield Noted(_counted("dropped", action.neighbor, code=action.code, why=action.text))
            case _:
                pass

    def _whose_attempt(self, row: AttemptRow) -> Whose:
        """Return whose an attempt is; after a restart only its origin is known if its claim has ended."""
        found = self._whose(row.claim)
        return found if found.origin else Whose(origin=row.named.task.system)

    def _whose(self, claim: ClaimId) -> Whose:
        row = remembered_claim(self._module.state, claim)
        if row is None:
            return Whose()
        user = str(row.tdv.description().get("user", ""))
        return Whose(user, row.origin, "" if row.via == self._own else row.via)

    def _user_of_named(self, task: str) -> str:
        found = _NAMED.fullmatch(task.removeprefix(f"{self._own}."))
        if found is None:
            return ""
        return self._user_of(queries.submission_numbered(self._module.state, int(found[1])))

    def _user_of(self, task: TaskId) -> str:
        key = task.submission
        known = self._users.get(key)
        if known is not None:
            return known
        submission = queries.live_submission(self._module.state, key)
        return self._note_user(key, submission.tdv) if submission is not None else ""

    def _note_user(self, submission: TaskId, tdv: TDV) -> str:
        user = self._users[submission] = str(tdv.description().get("user", ""))
        if len(self._users) > _USERS_LIMIT:
            del self._users[next(iter(self._users))]
        return user


def _counted(what: str, neighbor: str, /, *, code: str, why: str = "") -> Entry:
    return Entry(Kind.TASK, what, of_neighbor(neighbor), None, neighbor, code=code, why=why, is_counted=True)


def _reason_of(deny: SchedDeny | TaskDeny) -> tuple[str, str]:
    return (deny.reasons[0].code, deny.reasons[0].text) if deny.reasons else ("", "")
