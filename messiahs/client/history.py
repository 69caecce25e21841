"""The tasks that have ended: which of a module's answer a user means."""

from collections.abc import Iterable
from datetime import datetime

from messiahs.client.connection import Document
from messiahs.client.status import is_final


def ended_among(tasks: Iterable[Document], *, begin: datetime, user: str | None = None) -> list[Document]:
    """Return the tasks that ended since an instant, the first to end first; `user` None means those of all users."""
    ended = [
        task
        for task in tasks
        if is_final(task)
        and task.get("ended_at") is not None
        and datetime.fromisoformat(task["ended_at"]) >= begin
        and user in (None, task.get("user"))
    ]
    return sorted(ended, key=lambda task: str(task["ended_at"]))
