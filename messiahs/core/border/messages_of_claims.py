"""The attempts in the messages of a claim (MESSIAHS 5.3.2)."""

from collections.abc import Mapping
from dataclasses import replace

from messiahs.core.interface.messages import (
    ClaimEnd,
    ClaimMessage,
    TaskKill,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.model.ids import AttemptId


def attempts_in(message: ClaimMessage) -> tuple[AttemptId, ...]:
    """Return every attempt that a message names."""
    match message:
        case TaskStatus():
            return tuple(status.attempt for status in message.attempts)
        case TaskStatusAck():
            return (*message.taken, *message.unbound, *message.moving)
        case TaskStatusQuery() | TaskKill() | TaskRevoke():
            return message.attempts
        case ClaimEnd():
            return ()


def with_attempts(message: ClaimMessage, names: Mapping[AttemptId, AttemptId]) -> ClaimMessage | None:
    """Return a message with other names for its attempts, without those that have none; None if it then says nothing.

    A query that names no attempts asks for all of them, so one that has lost all is not sent.
    """
    match message:
        case TaskStatus():
            statuses = tuple(
                replace(status, attempt=names[status.attempt]) for status in message.attempts if status.attempt in names
            )
            return replace(message, attempts=statuses)
        case TaskStatusAck():
            return replace(
                message,
                taken=_named(message.taken, names),
                unbound=_named(message.unbound, names),
                moving=_named(message.moving, names),
            )
        case TaskStatusQuery() | TaskKill() | TaskRevoke():
            attempts = _named(message.attempts, names)
            return replace(message, attempts=attempts) if attempts or not message.attempts else None
        case ClaimEnd():
            return message


def _named(attempts: tuple[AttemptId, ...], names: Mapping[AttemptId, AttemptId]) -> tuple[AttemptId, ...]:
    return tuple(names[attempt] for attempt in attempts if attempt in names)
