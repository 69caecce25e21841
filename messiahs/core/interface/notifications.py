"""How users learn that their tasks have ended without asking (not in the papers)."""

from dataclasses import dataclass

from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What is done at the end of a task, or of the last member of an array.

    `text` is a command for the shell of the account `uid`, who has submitted the task, or the URL of a webhook.
    """

    text: str
    uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRow:
    """The end of a submission of which its user is to be notified; stored until that is done, and then as done.

    `state` is the worst one of an array, and `exit_code` 1 unless all members ended with 0. `output` is the end of what
    the command printed, for the user alone.
    """

    id: TaskId
    notification: Notification
    user: str
    name: str
    state: TaskState
    exit_code: int | None
    submitted_at: Instant
    ended_at: Instant
    given_at: Instant | None = None
    problem: str = ""
    """Why nobody was notified, or the command failed; empty if all went well."""
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """The host has notified the user of the end of a submission at `ended_at`, or has given that up."""

    id: TaskId
    ended_at: Instant
    problem: str = ""
    output: str = ""
