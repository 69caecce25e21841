"""A door with a table of neighbors and a clock of its own, and requests to it."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.tls import KeyAndCertificate
from messiahs.cli.federation.certificates import make_certificates, tls_paths
from messiahs.config.settings import ModuleSettings
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, Instant
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.membership.door import JoinDoor
from messiahs.daemon.membership.token_book import Token
from messiahs.daemon.process.refusal_log import RefusalLog
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.open_policy import OpenPolicy
from messiahs.wire.codec import JoinAnswer, JoinDeny, JoinRequest

CAMPUS, CS, XINU, BLAYS = "campus", SystemId("cs"), SystemId("xinu"), SystemId("blays")
_Result = TypeVar("_Result")
_POLICY = 'policy "p" version 1; accept from any {{}} join {{ {rules} }}'
WAITS = "an administrator of cs has to decide (`messiahs join list`)"


class NoRandomness:
    """Draws nothing but zeros."""

    def bits(self, count: int, /) -> int:
        """Return 0."""
        del count
        return 0


@dataclass(kw_only=True)
class ListedMembers:
    """A module with neighbors in a table (mutable)."""

    rules: str | None = None
    known: dict[SystemId, Neighbor] = field(default_factory=dict)
    assigned: tuple[SystemId, ...] = ()
    leaving: tuple[SystemId, ...] = ()
    foreign: tuple[str, ...] = ()
    revoked: tuple[bytes, ...] = ()
    problem: str = ""
    added: list[str] = field(default_factory=list)
    system: SystemId = CS

    def neighbors(self) -> Mapping[SystemId, Neighbor]:
        """Return the table."""
        return self.known

    def is_assigned(self, name: SystemId) -> bool:
        """Whether the name is listed."""
        return name in self.assigned

    def is_leaving(self, name: SystemId) -> bool:
        """Whether the name is listed."""
        return name in self.leaving

    def policy(self) -> Policy:
        """Return a policy with these rules in its block `join`; without rules, one without that block."""
        if self.rules is None:
            return OpenPolicy()
        return parse_policy(_POLICY.format(rules=self.rules), file="p.policy")

    def has_other_roots(self, name: SystemId) -> bool:
        """Whether the name is listed."""
        return name in self.foreign

    def is_revoked(self, certificate: bytes) -> bool:
        """Whether it is listed."""
        return certificate in self.revoked

    async def add(self, neighbor: Neighbor, text: str) -> str:
        """Enter it into the table."""
        if not self.problem:
            self.known[neighbor.system] = neighbor
            self.added.append(text)
        return self.problem


@dataclass(kw_only=True)
class Rig:
    """A door with a clock of its own."""

    folder: Path
    members: ListedMembers
    clock: list[int] = field(default_factory=lambda: [24_000 * HOUR])
    door: JoinDoor = field(init=False)

    def __post_init__(self) -> None:
        """Make the site of `cs`, and open its door."""
        directory = self.folder / CAMPUS
        directory.mkdir()
        make_certificates(directory, [CS])
        paths = tls_paths(directory, CS)
        self.settings = ModuleSettings(
            federation=CAMPUS,
            name=CS,
            state_directory=directory,
            listen="gate:7101",
            certificate_file=paths.certificate_file,
            key_file=paths.key_file,
            trust_file=paths.trust_file,
        )
        self.root = KeyAndCertificate(
            key=(directory / "tls" / "root.key").read_bytes(), certificate=paths.trust_file.read_bytes()
        )
        self.restart()

    def restart(self) -> None:
        """Open the door again, as after a restart of the daemon."""

        def calendar(_: Instant) -> CalendarTime:
            return CalendarTime(clock=600, date=0)

        self.door = JoinDoor(
            self.settings,
            self.members,
            calendar=calendar,
            randomness=NoRandomness(),
            on_refused=RefusalLog().note,
        )
        self.door.book._clock = lambda: self.clock[0]

    def token(self, *, pattern: str = "*", lasts_ns: int = HOUR, role: str = "child") -> Token:
        """Make a token."""
        made, _ = play(self.door.make_token(pattern=pattern, lasts_ns=lasts_ns, role=role))
        return made

    def ask(self, token: Token, request: JoinRequest) -> JoinAnswer:
        """Ask with a token."""
        return play(self.door.answer(token.id, request))

    def remove_root_key(self) -> None:
        """Let the key of the root be elsewhere."""
        (self.settings.state_directory / "tls" / "root.key").unlink()


def play(scene: Awaitable[_Result]) -> _Result:
    async def run() -> _Result:
        return await scene

    return asyncio.run(run())


def wanting(name: SystemId = XINU, *, key: bytes | None = None, role: Relation = Relation.CHILD) -> JoinRequest:
    """Return a request of a system, with a key of its own."""
    _, request = make_request(federation=CAMPUS, name=name, key=key)
    return JoinRequest(name=name, role=role, certificate_request=request)


def denied(answer: JoinAnswer) -> str:
    """Return the text of a denial."""
    assert isinstance(answer, JoinDeny), answer
    return answer.text
