"""Names of systems, tasks, attempts, claims and searches (MESSIAHS 5.3.2: ids in message headers).

An id is (system, epoch, counter): the epoch is 64 random bits drawn when a module's state is made, so that a
module whose state was lost never gives out an old id again. People never see the epoch.

Ids are named tuples and not dataclasses because they are the keys of every table: their hash is computed in C.
"""

from typing import NamedTuple, NewType

SystemId = NewType("SystemId", str)
"""The name of an autonomous system, such as `blays` or `cs.purdue`."""

Epoch = NewType("Epoch", int)
SearchId = NewType("SearchId", bytes)
"""16 random bytes, the same at every hop of one search; no border rewrites it."""

Ticket = NewType("Ticket", bytes)
"""16 random bytes that an executor gives with a claim: they allow to bring that claim's tasks and fetch their bytes."""

MessageId = NewType("MessageId", int)
"""Counts the messages that one module sent; an answer names the message that it answers (MESSIAHS 5.3.2)."""

ClientKey = NewType("ClientKey", str)
"""Made by the client for one submit, so that a repeated submit is recognised."""


class TaskId(NamedTuple):
    """A task, or with `member` 0 of a submission with several members, all of them."""

    system: SystemId
    epoch: Epoch
    number: int
    member: int = 0

    @property
    def submission(self) -> "TaskId":
        """What it was submitted in: itself, if it is no member of an array."""
        return TaskId(self.system, self.epoch, self.number)

    def __str__(self) -> str:
        """Write it as people do: `blays.17`, a member of an array `blays.17.3`."""
        return f"{self.system}.{self.number}.{self.member}" if self.member else f"{self.system}.{self.number}"


class AttemptId(NamedTuple):
    """One try to run a task; a task's attempts follow one another and never overlap."""

    task: TaskId
    number: int

    def __str__(self) -> str:
        """Write it as `blays.17#2`."""
        return f"{self.task}#{self.number}"


class ClaimId(NamedTuple):
    """Places at one executor, granted for tasks of one shape; the executor names it."""

    executor: SystemId
    epoch: Epoch
    number: int

    def __str__(self) -> str:
        """Write it as `leonardo/5`."""
        return f"{self.executor}/{self.number}"
