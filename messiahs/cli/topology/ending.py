"""Modules that a changed topology file does not name any more: they are drained, and ended when nothing is left."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from messiahs.cli.module.membership import what_is_left
from messiahs.client.module import ModuleClient
from messiahs.config.settings import ModuleSettings
from messiahs.core.model.counts import counted
from messiahs.daemon.process.pid_files import recorded_process

_POLL_SECONDS: Final = 0.1
_GONE: Final = "the topology file does not name it any more"
"""The reason of their drains, by which those of people are told from them."""


@dataclass(slots=True)
class Leavers:
    """The modules that are to end (mutable): `left` has what each one still does, and `ended` those that may end."""

    settings: dict[str, ModuleSettings]
    say: Callable[[str], None]
    left: dict[str, str] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)

    def drain(self) -> None:
        """Let them take no more work."""
        for name, settings in self.settings.items():
            with ModuleClient(settings.socket) as client:
                if client.drain_state()["drain"] is None:
                    client.drain(reason=_GONE)
            self.left[name] = ""
            self.say(f"{name}: is drained, because {_GONE}")

    def with_own_tasks(self) -> frozenset[str]:
        """Return those whose users have tasks that have not ended; these may still need neighbors."""
        return frozenset(name for name in self.left if is_running(self.settings[name]) and self._own_tasks(name))

    def await_end(self, *, deadline: float, on_own_tasks_ended: Callable[[], None]) -> None:
        """Wait until they are empty, at the latest until the deadline (`time.monotonic`), and say what is left.

        `on_own_tasks_ended` is called once no module has tasks of its users, if one had any.
        """
        has_tasks = bool(self.with_own_tasks())
        while True:
            if has_tasks and not self.with_own_tasks():
                has_tasks = False
                on_own_tasks_ended()
            self._look()
            if not self.left or time.monotonic() >= deadline:
                return
            time.sleep(_POLL_SECONDS)

    def _look(self) -> None:
        for name, before in tuple(self.left.items()):
            text = self.left[name] = self._remains(name)
            if not text:
                del self.left[name]
                self.ended.append(name)
                _let_work(self.settings[name])
            elif text != before:
                self.say(f"{name}: {text}")

    def _remains(self, name: str) -> str:
        """Return what a module still has to end; "" if it is empty, or has ended."""
        if not is_running(self.settings[name]):
            return ""
        with ModuleClient(self.settings[name].socket) as client:
            drain = client.drain_state()["drain"]
            neighbors = [each["name"] for each in client.neighbors() if each["relation"] is not None]
        if drain is None:
            return "its drain was ended by `module undrain`"
        own = drain["own_tasks"]
        if own:
            return f"{counted(own, 'task')} of its users {'has' if own == 1 else 'have'} not ended"
        if not drain["empty"]:
            return what_is_left(drain["left"])
        return f"links with {', '.join(neighbors)} are being ended" if neighbors else ""

    def _own_tasks(self, name: str) -> int:
        with ModuleClient(self.settings[name].socket) as client:
            drain = client.drain_state()["drain"]
        return 0 if drain is None else int(drain["own_tasks"])


def readmit(modules: Iterable[ModuleSettings], say: Callable[[str], None]) -> None:
    """End the drains of modules that a file names again before they ended."""
    for settings in modules:
        if _let_work(settings):
            say(f"{settings.name}: takes work again")


def is_running(settings: ModuleSettings) -> bool:
    """Whether the daemon of a module runs."""
    return recorded_process(settings.directory / "daemon.pid") is not None


def _let_work(settings: ModuleSettings) -> bool:
    """End the drain of a module that its absence from the file began, and return whether there was one."""
    if not is_running(settings):
        return False
    with ModuleClient(settings.socket) as client:
        drain = client.drain_state()["drain"]
        if drain is None or drain["reason"] != _GONE:
            return False
        client.drain(is_on=False, reason="the topology file names it again")
    return True
