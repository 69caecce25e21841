"""Tokens at the port of a module, over real TLS: they let their holder ask to join, and do nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.tls import KeyAndCertificate, TlsFiles, TlsMaterial, issue, load, make_root, write
from messiahs.channel.contract import ChannelSettings
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.membership.asking import ask_to_join
from messiahs.channel.membership.authority import JoinAuthority, mark_of
from messiahs.channel.membership.tokens import JoinToken
from messiahs.config.regular_files import read_regular
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.errors import ChannelError, UntrustedError
from messiahs.wire.codec import JoinAccept, JoinAnswer, JoinDeny, JoinRequest, join_request_to_bytes
from messiahs.wire.limits import CERTIFICATE_REQUEST_LIMIT_BYTES
from tests.contract.channel_modules import CS, FEDERATION, XINU, Recorded
from tests.contract.raw_calls import status_of
from tests.waiting import PATIENCE_SECONDS, until

TOKEN = "0123456789abcdef" * 2
REQUEST = JoinRequest(name=XINU, role=Relation.CHILD, certificate_request=b"request")
ACCEPTED = JoinAccept(certificate=b"certificate", roots=b"roots", update_period_ns=SECOND)
METHODS = (
    "Control/Exchange",
    "Control/Wanted",
    "Update/Exchange",
    "Task/Transfer",
    "Task/Put",
    "Task/Read",
    "Task/Feed",
    "Task/Pipe",
)


@dataclass(kw_only=True)
class OpenDoor:
    """Accepts the holder of every token, once it may answer; notes what it was asked (mutable)."""

    authority: JoinAuthority
    asked: list[tuple[str, JoinRequest]] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def roots(self) -> bytes:
        """Return the authority."""
        return self.authority.certificate()

    def mark(self) -> bytes:
        """Return the mark of the authority."""
        return mark_of(self.roots())

    async def answer(self, token: str, request: JoinRequest) -> JoinAnswer:
        """Accept."""
        self.asked.append((token, request))
        await self.may_answer.wait()
        return ACCEPTED


@dataclass(kw_only=True)
class Parent:
    """A module that can be joined, at its port."""

    folder: Path
    root: KeyAndCertificate
    door: OpenDoor
    recorded: Recorded
    address: str = ""

    def material(self, name: str) -> TlsMaterial:
        """Return the key and certificate of a module of this site."""
        files = TlsFiles(
            certificate_file=self.folder / f"{name}.pem",
            key_file=self.folder / f"{name}.key",
            trust_file=self.folder / "root.pem",
        )
        if not files.certificate_file.exists():
            made = issue(self.root, federation=FEDERATION, name=name)
            write(made, certificate_file=files.certificate_file, key_file=files.key_file)
        return load(files)

    def token(self) -> JoinToken:
        """Make a token."""
        made = self.door.authority.sign(federation=FEDERATION, parent=CS, token=TOKEN)
        return JoinToken(
            address=self.address,
            federation=FEDERATION,
            parent=CS,
            parent_key=key_fingerprint(certificates_in(self.material(CS).certificate)[0]),
            roots=self.root.certificate,
            certificate=made.certificate,
            key=made.key,
        )

    async def code_of(self, method: str, shown: KeyAndCertificate, *, content: bytes = b"") -> tuple[object, str]:
        """Call a method with a certificate; return the status code and the text."""
        material = self.material(CS)
        credentials = grpc.ssl_channel_credentials(material.certificate, shown.key, shown.certificate)
        options = (("grpc.ssl_target_name_override", str(CS)), ("grpc.use_local_subchannel_pool", 1))
        async with grpc.aio.secure_channel(self.address, credentials, options=options) as channel:
            return await status_of(channel, method, content=content)


def play(folder: Path, scene: Callable[[Parent], Awaitable[None]]) -> None:
    async def run() -> None:
        (folder / "root.pem").write_bytes((root := make_root(FEDERATION)).certificate)
        door = OpenDoor(authority=JoinAuthority(folder / "join"))
        door.may_answer.set()
        recorded = Recorded(name=CS)
        parent = Parent(folder=folder, root=root, door=door, recorded=recorded)
        settings = ChannelSettings(federation=FEDERATION, name=CS, listen="127.0.0.1:0", sockets=recorded.sockets)
        channels = grpc_channels(settings, recorded.callbacks(), parent.material(CS), door)
        await channels.start()
        parent.address = channels.address
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await scene(parent)
        finally:
            await channels.stop()

    asyncio.run(run())


def test_the_holder_of_a_token_asks_and_gets_the_answer(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        # The authority is younger than the port.
        assert await ask_to_join(parent.token(), REQUEST) == ACCEPTED
        assert parent.door.asked == [(TOKEN, REQUEST)]

    play(tmp_path, scene)


def test_a_token_is_read_from_the_line_that_was_written(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        token = parent.token()
        assert JoinToken.from_text(b" " + token.to_text().encode() + b"\n") == token

    play(tmp_path, scene)


@pytest.mark.parametrize("method", METHODS)
def test_no_other_method_accepts_the_certificate_of_a_token(tmp_path: Path, method: str) -> None:
    async def scene(parent: Parent) -> None:
        token = parent.token()
        shown = KeyAndCertificate(key=token.key, certificate=token.certificate)
        code, text = await parent.code_of(method, shown)
        assert (code, text) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "its certificate is that of a token, which is for joining alone",
        )

    play(tmp_path, scene)


@pytest.mark.parametrize("method", [*METHODS, "Membership/Join"])
def test_what_the_authority_for_tokens_signs_for_a_module_is_refused_everywhere(tmp_path: Path, method: str) -> None:
    async def scene(parent: Parent) -> None:
        parent.token()
        folder = parent.door.authority.folder
        stolen = KeyAndCertificate(
            key=read_regular(folder / "authority.key"), certificate=read_regular(folder / "authority.pem")
        )
        code, text = await parent.code_of(method, issue(stolen, federation=FEDERATION, name=XINU))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert ("only a token" if method == "Membership/Join" else "the authority for tokens signed it") in text

    play(tmp_path, scene)


def test_the_certificate_of_a_module_is_no_token(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        parent.token()
        material = parent.material(XINU)
        shown = KeyAndCertificate(key=material.key, certificate=material.certificate)
        code, text = await parent.code_of("Membership/Join", shown, content=join_request_to_bytes(REQUEST))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert "only a token of this module" in text
        assert not parent.door.asked

    play(tmp_path, scene)


def test_the_token_of_another_module_does_not_pass_the_handshake(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        mine = parent.token()
        other = JoinAuthority(tmp_path / "other").sign(federation=FEDERATION, parent=CS, token=TOKEN)
        with pytest.raises(ChannelError, match="does not know this token"):
            await ask_to_join(replace(mine, certificate=other.certificate, key=other.key), REQUEST)
        assert not parent.door.asked

    play(tmp_path, scene)


def test_a_token_that_its_authority_made_for_another_parent_is_refused(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        other = parent.door.authority.sign(federation=FEDERATION, parent=XINU, token=TOKEN)
        with pytest.raises(UntrustedError, match="only a token of this module"):
            await ask_to_join(replace(parent.token(), certificate=other.certificate, key=other.key), REQUEST)

    play(tmp_path, scene)


def test_another_module_of_the_site_at_the_address_is_not_the_parent(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        token = replace(parent.token(), parent=XINU)
        with pytest.raises(UntrustedError, match="is not the module xinu that made this token"):
            await ask_to_join(token, REQUEST)
        assert not parent.door.asked

    play(tmp_path, scene)


def test_a_module_of_the_same_name_under_another_root_is_not_the_parent(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        token = replace(parent.token(), roots=make_root(FEDERATION).certificate)
        with pytest.raises(UntrustedError, match="is not the module cs that made this token"):
            await ask_to_join(token, REQUEST)
        assert not parent.door.asked

    play(tmp_path, scene)


def test_a_module_of_the_same_name_with_another_key_is_not_the_parent(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        with pytest.raises(UntrustedError, match="has another key than the module cs"):
            await ask_to_join(replace(parent.token(), parent_key=bytes(16)), REQUEST)
        assert not parent.door.asked

    play(tmp_path, scene)


def test_one_request_of_a_token_is_decided_at_a_time_and_others_are_turned_away(tmp_path: Path) -> None:
    async def scene(parent: Parent) -> None:
        token = parent.token()
        parent.door.may_answer.clear()
        first = asyncio.create_task(ask_to_join(token, REQUEST))
        shown = KeyAndCertificate(key=token.key, certificate=token.certificate)
        await until(lambda: parent.door.asked)
        flood = await asyncio.gather(*(parent.code_of("Membership/Join", shown) for _ in range(20)))
        assert {code for code, _ in flood} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        parent.door.may_answer.set()
        assert await first == ACCEPTED
        assert len(parent.door.asked) == 1

    play(tmp_path, scene)


@pytest.mark.parametrize(
    "request_", [replace(REQUEST, certificate_request=bytes(CERTIFICATE_REQUEST_LIMIT_BYTES + 1))], ids=["too long"]
)
def test_a_request_out_of_bounds_is_denied_before_the_door_sees_it(tmp_path: Path, request_: JoinRequest) -> None:
    async def scene(parent: Parent) -> None:
        answer = await ask_to_join(parent.token(), request_)
        assert isinstance(answer, JoinDeny)
        assert "16384 are allowed" in answer.text
        assert not parent.door.asked

    play(tmp_path, scene)
