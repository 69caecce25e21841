"""The module under test, a seat at which the suite sits as its neighbor, and a neighbor that behaves well."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.core.model.ids import SystemId
from messiahs.errors import ClientError
from tests.autonomy.users import Users
from tests.live.conftest import Federation, fixed_machine
from tests.live.lab import Lab, lab
from tests.waiting import eventually

SUBJECT, SEAT, FRIEND = "subject", "seat", "friend"
"""The modules of a scene, if the suite makes it."""
_TOPOLOGY: Final = """
version: 1
federation: autonomy
defaults: {{update_period: 300ms}}
systems:
  subject: {{machine: {machine}}}
  seat: {{parent: subject}}
  friend: {{parent: subject}}
"""
_POLICY: Final = """policy "autonomy" version 1;
accept from "{friend}" {{ }}
accept from users {{ }}
{rules}
"""
OPEN: Final = 'accept from "{seat}" {{ }}'
"""A rule that lets the seat run tasks at the module under test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The suite is a user and the administrator of `subject`, a user of `friend`, and has the keys of the seat."""

    subject: Federation
    friend: Federation
    seat: Path

    @property
    def name(self) -> SystemId:
        """The name of the module under test."""
        return SystemId(self.subject.module)

    @property
    def settings(self) -> ModuleSettings:
        """The settings of the seat."""
        return load_settings(self.seat / "settings.json")

    @property
    def module_of_the_seat(self) -> Federation:
        """The module whose keys the seat has; its daemon runs only while a test says so."""
        return _module_in(self.seat)

    @property
    def users(self) -> Users:
        """The users whose tasks nothing may harm."""
        return Users(places={"a local user": self.subject, "a user of another neighbor": self.friend})

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Let the module under test accept tasks of its users, of the friend and of the seat alone, for a while."""
        self.begin()
        try:
            yield
        finally:
            self.restore()

    def begin(self) -> None:
        """Wait until the seat is free and the friend is linked, and load the policy of the suite."""
        self.load(OPEN)
        with self.friend.client() as client:
            eventually(lambda: self.name in client.module()["linked"], "the friend is linked")

    def restore(self) -> None:
        """Undo what tests change: the policy, a drain, tasks of the seat, and that it is shut off."""
        with self.subject.client() as client:
            client.readmit(self.seat.name)
            for attempt in self.from_the_seat():
                # A test that failed has left it.
                with suppress(ClientError):
                    client.revoke(attempt, kill=True)
            with suppress(ClientError):
                client.drain(is_on=False)
            client.load_policy(None)

    def load(self, rules: str) -> None:
        """Load a policy that accepts users and the friend, with further rules, in which {seat} is the seat."""
        text = _POLICY.format(friend=self.friend.module, rules=rules.format(seat=self.seat.name))
        with self.subject.client() as client:
            problems = client.load_policy(text)["problems"]
        assert not [each for each in problems if each.get("severity") != "warning"], problems

    def neighbor(self) -> dict[str, Any]:
        """Return what the module under test says about its link with the seat."""
        with self.subject.client() as client:
            return dict(next(each for each in client.neighbors() if each["name"] == self.seat.name))

    def from_the_seat(self) -> list[str]:
        """Return the attempts of the seat that run or wait at the module under test."""
        with self.subject.client() as client:
            return [each["attempt"] for each in client.attempts() if each["origin"] == self.seat.name]


def scene_of(subject: Path, seat: Path, friend: Path, /) -> Scene:
    """Return the scene of the modules in these folders."""
    return Scene(subject=_module_in(subject), friend=_module_in(friend), seat=seat.resolve())


def _module_in(folder: Path) -> Federation:
    folder = folder.resolve()
    return Federation(topology=folder, name=folder.parent.name, state=folder.parent.parent, module=folder.name)


@contextmanager
def own_lab(folder: Path) -> Iterator[Lab]:
    """Start a module, another neighbor of it, and make the keys of a seat."""
    file = folder / "autonomy.yaml"
    machine = fixed_machine(slots=4, attributes="{room: cellar}")
    file.write_text(_TOPOLOGY.format(machine=machine))
    with lab(file, name="autonomy", module=SUBJECT) as made:
        made.kill(SEAT)
        yield made


def is_running(mark: str) -> bool:
    """Return whether a process with a mark among its arguments runs on this host."""
    return any(mark in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
