"""Documents of the local API about tasks, as types."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict
from urllib.parse import urlencode

from messiahs.client.connection import Connection, Document

FINAL_STATES: Final = frozenset({"finished", "aborted", "killed", "revoked", "denied"})
_ASKED_TASKS: Final = 64


class Usage(TypedDict):
    """What the last attempt of a task used; None where that is not known."""

    cpu_s: float | None
    peak_memory_bytes: int | None
    written_bytes: int | None
    read_bytes: int | None
    suspended_s: float | None


class Reason(TypedDict):
    """Why a module has no place for a task, and why those have none that it asked (`hops`)."""

    module: str
    code: str
    rule: str
    text: str
    why: str
    hops: list["Reason"]


class HistoryEntry(TypedDict):
    """Something that happened to a task; `at` is in RFC 3339, `attempt` counts from 1 (0: before the first)."""

    at: str
    event: str
    attempt: int
    module: str
    text: str


class Predecessor(TypedDict):
    """A task or array for which this one waits, or did; `when` is what has to happen to it (`ok`: exit code 0).

    Of one with `outputs`, these become inputs once it has ended; then they are taken.
    """

    on: str
    when: str
    is_met: bool
    outputs: NotRequired[list[str]]
    is_taken: NotRequired[bool]


class Hold(TypedDict, total=False):
    """Since when and why a task is on hold, or members of an array from `first` to `last`."""

    first: int
    last: int
    since: str
    reason: str


class Delay(TypedDict):
    """Why a task makes no progress, until when at most (None: not known)."""

    of: str
    since: str
    text: str
    until: str | None


class Containment(TypedDict):
    """How the last attempt of a task was kept from its machine, and what of that the machine could not do."""

    isolation: str
    lacks: str


class NotifyRetry(TypedDict):
    """How often notifying has failed, and when it is tried again (`next_at` is None: as soon as it is its turn)."""

    tries: int
    next_at: str | None


class Notified(TypedDict, total=False):
    """How the user was notified of the end (`at` is None: not yet); `output` is the end of what a command printed.

    `problem` says what went wrong, with `retry` at the last try.
    """

    at: str | None
    problem: str
    output: str
    retry: NotifyRetry | None


class AskedSystem(TypedDict):
    """A system in the order of a search: `answer` is `granted`, the code of a denial, `asked` or `not_asked`."""

    system: str
    why: str
    answer: str
    places: int
    reasons: list[Reason]


class LeftOut(TypedDict):
    """A neighbor that was not to be asked, since no machine behind it could take the task by what it has reported."""

    system: str
    code: str


class Search(TypedDict):
    """One search for a place: in which order systems were asked, and why so; `unlisted` counts further ones."""

    at: str
    order: list[AskedSystem]
    left_out: list[LeftOut]
    unlisted: int


class Round(TypedDict):
    """What a task without a place waits for: the answer of `asking`, or the next search, at the latest `next_at`."""

    is_searching: bool
    asking: str | None
    next_at: str | None


class FittingMachines(TypedDict):
    """How many of the `known` machines could take a task if they were idle, surely at `least` and possibly at `most`.

    `lost` are the demands that exclude others, and `changes` the single values that would let more of them fit.
    """

    known: int
    least: int
    most: int
    lost: list[dict[str, Any]]
    changes: list[dict[str, Any]]


class TaskStatus(TypedDict, total=False):
    """The state of a task, or (`members`, `counts` and `exit_codes` instead of `state` …) of all tasks of an array.

    `state` is `executing` (with a `substate` such as `queued` or `running`) or one of `FINAL_STATES`. `exit_code` is
    None unless the program exited by itself, `signal` unless one ended it. `cause` and `text` say why it ended
    otherwise. Times are in RFC 3339, None for what has not happened. `counts` are members by state, `exit_codes`
    those that have finished by exit code; `held` of the queued ones are on hold. `tdv` describes the task to
    policies. A killed task may still run at `may_run_on` until `may_run_until`. At most `at_once` members of an
    array run at the same time (None: all), and a member waits while `behind` others are placed or run (None: it
    does not). A module may send more than is listed here.
    """

    id: str
    name: str
    user: str
    argv: list[str]
    state: str
    substate: str | None
    exit_code: int | None
    signal: int | None
    cause: str
    text: str
    attempt: int
    executed_on: str
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    usage: Usage | None
    tdv: dict[str, Any]
    requirement: str
    priority: int
    may_run_on: str | None
    may_run_until: str | None
    suspended_since: str | None
    suspended_s: float
    containment: Containment | None
    after: list[Predecessor]
    hold: Hold | None
    delay: Delay | None
    assigned: dict[str, list[int]]
    reasons: list[Reason]
    search: Search | None
    round: Round | None
    machines: FittingMachines | None
    history: list[HistoryEntry]
    item: str | None
    at_once: int | None
    behind: int | None
    members: int
    counts: dict[str, int]
    exit_codes: dict[str, int]
    held: int
    holds: list[Hold]
    notified: Notified | None


class Ended(NamedTuple):
    """Tasks that have ended since an instant, in seconds since 1970, of one user or (None) of all."""

    since: float
    user: str | None = None


class Listed(NamedTuple):
    """Tasks of one user or (None) of all; with `only_active`, only those that have not ended."""

    user: str | None = None
    only_active: bool = False

    def has(self, task: Document) -> bool:
        """Whether a task or an array is one of these."""
        return self.user in (None, task.get("user")) and not (self.only_active and is_final(task))


Among = Ended | Listed


def asked_states(
    connection: Connection,
    ids: Sequence[str],
    *,
    members: bool = False,
    explained: bool = False,
    among: Among | None = None,
    patience: float | None,
) -> Document:
    """Ask for the states of tasks, or of all; returns `{"tasks": […], "unknown": [ids]}`, with arrays by members.

    With `explained`, tasks have what `Client.explain` returns. Of the unknown ids, those that were known once are also
    in `"forgotten": {id: sentence}`. `among` leaves out all other tasks; a module of an earlier release may return some
    of these, too.
    """
    answer: Document = {"tasks": [], "unknown": []}
    forgotten: Document = {}
    # The length of a request line has a limit.
    for names in (ids[start : start + _ASKED_TASKS] for start in range(0, max(1, len(ids)), _ASKED_TASKS)):
        asked = [("id", task) for task in names] + ([("members", "1")] if members else [])
        asked += [("explain", "1")] if explained else []
        if among is not None and among.user is not None:
            asked.append(("user", among.user))
        match among:
            case Ended():
                asked.append(("ended_since", str(int(among.since))))
            case Listed(only_active=True):
                asked.append(("active", "1"))
        part = connection.ask("GET", f"/v1/tasks?{urlencode(asked)}", patience=patience)
        answer = {key: answer[key] + part.get(key, []) for key in answer}
        forgotten |= part.get("forgotten", {})
    return {**answer, "forgotten": forgotten} if forgotten else answer


def is_final(task: Mapping[str, Any]) -> bool:
    """Whether a task, or every member of an array, has reached a final state."""
    if "counts" in task:
        ended = sum(count for state, count in task["counts"].items() if state in FINAL_STATES)
        return bool(ended == task["members"])
    return task.get("state") in FINAL_STATES
