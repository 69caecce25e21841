"""Names of systems, tasks, attempts, claims and searches (MESSIAHS 5.3.2: ids in message headers).

An id is (system, epoch, number): tasks are counted, and the numbers of claims are drawn. The epoch is 64 random bits
drawn when the state of a module is created, so that a module that lost its state never issues an old id again. Users
never see the epoch.

Ids are named tuples rather than dataclasses because they are the keys of every table: their hash is computed in C.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, NewType

from messiahs.core.model.instants import Instant

SystemId = NewType("SystemId", str)
"""The name of an autonomous system, such as `blays` or `cs.purdue`."""

Epoch = NewType("Epoch", int)
SearchId = NewType("SearchId", bytes)
"""16 random bytes that identify a search at every hop, also across borders."""

Ticket = NewType("Ticket", bytes)
"""16 random bytes that a module makes for a claim; they authorize sending tasks to it, and fetching their outputs."""

MessageId = NewType("MessageId", int)
"""Counts the messages that one module sent; an answer refers to the id of its request (MESSIAHS 5.3.2)."""

ClientKey = NewType("ClientKey", str)
"""Chosen by the client for each submit, so that a repeated submit is recognized."""


def part_key(key: ClientKey, place: int, /) -> ClientKey:
    """Return the key of a submission of a workflow with a key, by its place from 0.

    It begins with a colon, and no key of a single submission does, as a user comes first there.
    """
    return ClientKey(f":{place}:{key}")


class TaskId(NamedTuple):
    """A task; with `member` 0 of a submission with several members, all of its tasks."""

    system: SystemId
    epoch: Epoch
    number: int
    member: int = 0

    @property
    def submission(self) -> "TaskId":
        """The submission of the task: the id itself, unless the task is a member of an array."""
        return TaskId(self.system, self.epoch, self.number) if self.member else self

    def __str__(self) -> str:
        """Format the id for users: `blays.17`, or `blays.17.3` for a member of an array."""
        return f"{self.system}.{self.number}.{self.member}" if self.member else f"{self.system}.{self.number}"


class AttemptId(NamedTuple):
    """One try to run a task; a task's attempts follow one another and never overlap."""

    task: TaskId
    number: int

    def __str__(self) -> str:
        """Format the id as `blays.17#2`."""
        return f"{self.task}#{self.number}"


class ClaimId(NamedTuple):
    """Places at one executor, granted for tasks of one shape; the executor assigns the id, and draws its number."""

    executor: SystemId
    epoch: Epoch
    number: int

    def __str__(self) -> str:
        """Format the id as `leonardo/5`."""
        return f"{self.executor}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdsGiven:
    """How many submissions and claims a module has numbered, including skipped numbers."""

    submissions: int = 0
    claims: int = 0

    def exceeds(self, other: "IdsGiven") -> bool:
        """Return whether this includes ids that are unknown to the other."""
        return self.submissions > other.submissions or self.claims > other.claims

    def joined(self, other: "IdsGiven") -> "IdsGiven":
        """Return the greater count of each kind."""
        submissions, claims = max(self.submissions, other.submissions), max(self.claims, other.claims)
        return IdsGiven(submissions=submissions, claims=claims)


NONE_GIVEN: Final = IdsGiven()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEpoch:
    """An earlier epoch, in which no more ids are issued, and the last submission numbered in it."""

    epoch: Epoch
    submissions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNumbers:
    """Numbers of submissions, `first` to `last`, that were skipped because they may have been issued.

    What had them is not known. With `is_copy` it was stored after the copy from which the module continues since `at`;
    else a neighbor remembered the numbers at that instant, and the state was lost or is an older copy.
    """

    first: int
    last: int
    at: Instant
    is_copy: bool
