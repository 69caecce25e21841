"""Waiting for any of many tasks of some modules: each is reported once, as it ends."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Final
from urllib.parse import urlencode

from messiahs.client.connection import Connection, Document, OnConnection, untold
from messiahs.client.locating import array_of, task_of
from messiahs.client.module import ModuleClient
from messiahs.client.status import asked_states, is_final
from messiahs.errors import UnknownRequestError, UnknownTaskError

_HELD_SECONDS: Final = 1.0
"""Maximum time until a module that is there answers `EndingsFeed.next`."""
_SHARED_SECONDS: Final = 0.1
"""For how long each of several modules is listened to before the next one."""


class EndingsFeed:
    """The ids of the tasks that end at a module, from the first call of `next` on; for one thread."""

    def __init__(self, module: ModuleClient) -> None:
        self.connection, self._patience = Connection(module.socket_path), module.patience
        self._after = ""

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def states(self, ids: Sequence[str]) -> Document:
        """Return the states of tasks as `ModuleClient.tasks` does, by the connection that another thread can end."""
        return asked_states(self.connection, ids, patience=self._patience)

    def next(self, seconds: float = _HELD_SECONDS) -> tuple[list[str], bool]:
        """Return the ids of tasks that have ended since the last call, which may be none after some seconds.

        The id of an array stands for any of its members. True beside it means that others may have ended: whoever waits
        asks for the state of all of them, as after the first call, which returns at once. It always is with a module
        of an earlier release, which has no feed.
        """
        asked = urlencode({"after": self._after, "timeout": f"{seconds:g}"})
        try:
            page = self.connection.ask_held(f"/v1/endings?{asked}", held_seconds=seconds, patience=self._patience)
        except UnknownRequestError:
            time.sleep(seconds if self._after else 0)
            self._after = "-"
            return [], True
        has_gap = page["gap"] or not self._after
        self._after = page["after"]
        return page["ids"], has_gap


def ended_tasks(
    modules: Iterable[tuple[ModuleClient, Iterable[str]]],
    *,
    timeout: float | None = None,
    on_connection: OnConnection = untold,
) -> Iterator[Document]:
    """Yield the document of each task or array once it has ended, in the order of their ends (an attempt: of its task).

    Those that had ended before come first. Continues through restarts of the modules. Raises `UnknownTaskError`, and
    `TimeoutError` if not all have ended after `timeout` seconds.
    """
    until = None if timeout is None else time.monotonic() + timeout
    with ExitStack() as opened:
        some = [_Waited(module, ids) for module, ids in modules]
        for each in some:
            on_connection(opened.enter_context(closing(each.feed)).connection)
        while some := [each for each in some if each.ids]:
            held = _HELD_SECONDS if len(some) == 1 else _SHARED_SECONDS
            for each in some:
                yield from each.ended_within(held if until is None else max(0.0, min(held, until - time.monotonic())))
            left = [name for each in some for name in each.ids]
            if left and until is not None and time.monotonic() >= until:
                raise TimeoutError(f"{len(left)} of the tasks have not ended, such as {left[0]}")


class _Waited:
    """The tasks of one module that are waited for (mutable)."""

    def __init__(self, module: ModuleClient, ids: Iterable[str]) -> None:
        self.feed, self.ids = EndingsFeed(module), dict.fromkeys(map(task_of, ids))

    def ended_within(self, seconds: float) -> Iterator[Document]:
        """Yield what has ended since the last time, or ends within some seconds."""
        ended, has_gap = self.feed.next(seconds)
        asked = list(self.ids) if has_gap else self._concerned_by(ended)
        answer = self.feed.states(asked) if asked else {"tasks": [], "unknown": []}
        if answer["unknown"]:
            raise unknown_error(unknown_in(answer))
        for document in filter(is_final, answer["tasks"]):
            del self.ids[document["id"]]
            yield document

    def _concerned_by(self, ended: list[str]) -> list[str]:
        """Return those that have ended, or may have: the id of an array stands for any of its members."""
        known = set(ended)
        return [name for name in self.ids if name in known or array_of(name) in known]


def unknown_in(answer: Document) -> dict[str, str]:
    """Return the ids in a status that a module does not know, with a sentence on each."""
    gone = answer.get("forgotten", {})
    return {name: gone.get(name) or f"no task {name} is known here" for name in answer["unknown"]}


def unknown_error(unknown: Mapping[str, str]) -> UnknownTaskError:
    """Return the error that names tasks which a module does not know (`unknown_in`)."""
    more = len(unknown) - 1
    others = f"; {more} more {'is' if more == 1 else 'are'} not known either" if more else ""
    return UnknownTaskError(f"{next(iter(unknown.values()))}{others}")
