"""The door of a module: who may join with a token, who waits, and who is refused, with every text."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.issued import IssuedCertificates
from messiahs.channel.certificates.requests import make_request, requested_key, sign_request
from messiahs.channel.certificates.tls import make_root
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.channel.membership.tokens import JoinToken
from messiahs.cli.federation.certificates import make_certificates, tls_paths
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.membership.token_book import REQUEST_LIMIT, TOKEN_LIMIT, Phase
from messiahs.errors import MessiahsError, StoreError
from messiahs.wire.codec import JoinAccept, JoinDeny, JoinPending, JoinRequest
from tests.unit.daemon.membership.doors import BLAYS, CAMPUS, CS, WAITS, XINU, ListedMembers, Rig, denied, play, wanting


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Return a door whose policy admits every child."""
    return Rig(folder=tmp_path, members=ListedMembers(rules='allow child when $peer.name ne "";'))


def test_a_child_that_the_policy_admits_gets_a_certificate_and_is_added(rig: Rig) -> None:
    request = wanting()
    answer = rig.ask(rig.token(), request)
    assert isinstance(answer, JoinAccept)
    (certificate,) = certificates_in(answer.certificate)
    assert is_signed((certificate,), roots=answer.roots, as_server=XINU)
    key = requested_key(request.certificate_request, federation=CAMPUS, name=XINU)
    assert key_fingerprint(certificate) == key
    assert IssuedCertificates.read(rig.settings.state_directory / "tls").keys[XINU] == key.hex()
    assert rig.members.known == {XINU: Neighbor(system=XINU, is_child=True, is_primary_child=True)}


def test_a_token_names_the_module_its_key_and_its_roots(rig: Rig) -> None:
    _, text = play(rig.door.make_token(pattern="*", lasts_ns=HOUR))
    token = JoinToken.from_text(text.encode())
    own = certificates_in(rig.settings.certificate_file.read_bytes())[0]
    assert (token.address, token.parent, token.parent_key) == ("gate:7101", CS, key_fingerprint(own))
    assert token.roots == rig.root.certificate
    assert is_signed(certificates_in(token.certificate), roots=rig.door.roots())


def test_a_repeated_request_of_the_same_key_gets_the_same_answer_also_after_the_expiry(rig: Rig) -> None:
    token, request = rig.token(), wanting()
    first = rig.ask(token, request)
    rig.clock[0] += 2 * HOUR
    assert rig.ask(token, request) == first
    assert len(rig.members.added) == 1


def test_a_repeated_request_gets_the_same_answer_after_a_restart_of_the_parent(rig: Rig) -> None:
    token, request = rig.token(), wanting()
    first = rig.ask(token, request)
    rig.restart()
    assert rig.ask(token, request) == first


def test_a_neighbor_that_could_not_be_stored_is_added_at_the_next_request(rig: Rig) -> None:
    token, request = rig.token(), wanting()
    rig.members.problem = "the disk is full"
    assert rig.ask(token, request) == JoinPending(text="the disk is full", again_ns=2 * SECOND)
    rig.members.problem = ""
    rig.restart()
    assert isinstance(rig.ask(token, request), JoinAccept)
    assert list(rig.members.known) == [XINU]


def test_a_system_that_was_removed_does_not_return_with_its_old_token(rig: Rig) -> None:
    token, request = rig.token(), wanting()
    rig.ask(token, request)
    del rig.members.known[XINU]
    assert denied(rig.ask(token, request)) == "xinu joined cs with this token, and was removed since"
    assert isinstance(rig.ask(rig.token(), request), JoinAccept)


def test_a_used_token_is_refused_to_another_key(rig: Rig) -> None:
    token = rig.token()
    rig.ask(token, wanting())
    for other in (wanting(), wanting(BLAYS)):
        assert denied(rig.ask(token, other)) == "this token was used by xinu already, with its own key"


def test_an_expired_token_is_refused_by_the_clock_of_its_maker(rig: Rig) -> None:
    token = rig.token()
    rig.clock[0] += HOUR
    assert denied(rig.ask(token, wanting())) == "this token has expired by the clock of the module that made it"


def test_a_token_of_no_use_that_is_shown_again_and_again_is_one_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    expired, used = rig.token(), rig.token(lasts_ns=2 * HOUR)
    rig.ask(used, wanting())
    rig.clock[0] += HOUR
    caplog.clear()
    for _ in range(20):
        rig.ask(expired, wanting())
        rig.ask(used, wanting(BLAYS))
    late, other = caplog.messages
    assert late.startswith(f"the token {expired.id[:8]}: xinu may not join: this token has expired")
    assert other.startswith(f"the token {used.id[:8]}: blays may not join: this token was used by xinu already")
    for number in range(40):
        rig.ask(expired, wanting(SystemId(f"x{number}")))
    assert len(caplog.messages) < 20


def test_an_unknown_token_is_refused(rig: Rig) -> None:
    unknown = replace(rig.token(), id="0" * 32)
    assert "this token is not known" in denied(rig.ask(unknown, wanting()))


def test_a_revoked_token_is_unknown(rig: Rig) -> None:
    token = rig.token()
    play(rig.door.revoke(token.id[:8]))
    assert "this token is not known" in denied(rig.ask(token, wanting()))
    with pytest.raises(MessiahsError, match="no token has an id"):
        play(rig.door.revoke(token.id[:8]))


@pytest.mark.parametrize("name", ["", "zzz", "0" * 400])
def test_a_token_that_is_not_there_is_not_revoked_and_the_command_that_lists_them_is_named(rig: Rig, name: str) -> None:
    token = rig.token()
    text = f"no token has an id that begins with `{name[:32]}`: `messiahs join list` shows the ids"
    with pytest.raises(MessiahsError, match=re.escape(text)):
        play(rig.door.revoke(name))
    assert rig.door.book.tokens() == (token,)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Who is refused at a door that admits everybody, and why."""

    why: str
    request: Callable[[], JoinRequest] = wanting
    pattern: str = "*"
    known: tuple[Neighbor, ...] = ()
    foreign: tuple[str, ...] = ()


REFUSALS = {
    "a name that the token is not for": Refusal(
        pattern="lab-*", why="the token is for names like lab-*, and xinu is none of them"
    ),
    "the name of a neighbor": Refusal(
        known=(Neighbor(system=XINU, is_sibling=True),), why="cs has a neighbor xinu already: choose another name"
    ),
    "the name of the module itself": Refusal(
        request=lambda: wanting(CS), why="cs is the name of the module that it would join"
    ),
    "a name of another site": Refusal(foreign=("xinu",), why="xinu is a name of another site"),
    "a name that no topology has": Refusal(
        request=lambda: replace(wanting(SystemId("tls"))),
        why="tls cannot be the name of a system: this name is used by a file beside the modules' folders",
    ),
    "another role than that of the token": Refusal(
        request=lambda: replace(wanting(), role=Relation.SIBLING), why="the token is for a child"
    ),
    "the certificate request of another name": Refusal(
        request=lambda: replace(wanting(BLAYS), name=XINU),
        why="the certificate request names messiahs://campus/blays, blays, not URI:messiahs://campus/xinu and DNS:xinu",
    ),
    "no certificate request": Refusal(
        request=lambda: replace(wanting(), certificate_request=b"none"), why="the certificate request cannot be read"
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_it_is_refused_with_the_reason_and_the_token_is_not_used(rig: Rig, refusal: Refusal) -> None:
    rig.members.known = {each.system: each for each in refusal.known}
    rig.members.foreign = refusal.foreign
    token = rig.token(pattern=refusal.pattern)
    assert refusal.why in denied(rig.ask(token, refusal.request()))
    rig.members.foreign = ()
    # A better request may follow.
    assert isinstance(rig.ask(token, wanting(SystemId("lab-1"))), JoinAccept)


def test_a_name_that_the_root_has_certified_for_another_key_is_refused(rig: Rig) -> None:
    make_certificates(rig.settings.state_directory, [XINU])
    assert "`xinu` has a certificate for another key" in denied(rig.ask(rig.token(), wanting()))
    key = tls_paths(rig.settings.state_directory, XINU).key_file.read_bytes()
    assert isinstance(rig.ask(rig.token(), wanting(key=key)), JoinAccept)


def test_the_policy_refuses_with_its_rule(rig: Rig) -> None:
    rig.members.rules = 'allow child when $peer.name eq "blays";'
    answer = rig.ask(rig.token(), wanting())
    assert answer == JoinDeny(rule="join", text="nobody may join as child")
    assert isinstance(rig.ask(rig.token(), wanting(BLAYS)), JoinAccept)


def test_without_a_block_join_an_administrator_approves(rig: Rig) -> None:
    rig.members.rules = None
    token, request = rig.token(), wanting()
    assert rig.ask(token, request) == JoinPending(text=WAITS, again_ns=2 * SECOND)
    rig.restart()
    (waiting,) = rig.door.book.waiting()
    assert waiting.asked is not None
    assert (waiting.asked.name, waiting.asked.needs_certificate) == (XINU, False)
    play(rig.door.decide(XINU, is_approved=True))
    rig.restart()
    assert isinstance(rig.ask(token, request), JoinAccept)
    assert not rig.door.book.waiting()


def test_an_administrator_denies_with_a_text(rig: Rig) -> None:
    rig.members.rules = None
    token, request = rig.token(), wanting()
    rig.ask(token, request)
    play(rig.door.decide(XINU, is_approved=False, text="not this year"))
    rig.members.rules = 'allow child when $peer.name ne "";'
    assert denied(rig.ask(token, request)) == "not this year"
    with pytest.raises(MessiahsError, match="no system asks to join as xinu"):
        play(rig.door.decide(XINU, is_approved=True))


def test_a_request_that_waits_expires_with_its_token(rig: Rig) -> None:
    rig.members.rules = None
    token, request = rig.token(), wanting()
    rig.ask(token, request)
    rig.clock[0] += HOUR
    assert not rig.door.book.waiting()
    assert all(map(rig.door.book.has_expired, rig.door.book.tokens()))
    assert "has expired" in denied(rig.ask(token, request))


def test_a_token_that_has_let_its_system_in_does_not_expire(rig: Rig) -> None:
    token = rig.token()
    assert isinstance(rig.ask(token, wanting()), JoinAccept)
    rig.clock[0] += HOUR
    assert not any(map(rig.door.book.has_expired, rig.door.book.tokens()))


def test_so_many_requests_wait_and_no_more(rig: Rig) -> None:
    rig.members.rules = None
    tokens = [rig.token() for _ in range(REQUEST_LIMIT + 1)]
    for number, token in enumerate(tokens[:-1]):
        rig.ask(token, wanting(SystemId(f"x{number}")))
    late = wanting(SystemId("late"))
    full = rig.ask(tokens[-1], late)
    assert full == JoinPending(text="64 other requests wait for an administrator", again_ns=2 * SECOND)
    play(rig.door.decide("x0", is_approved=False))
    assert rig.ask(tokens[-1], late) == JoinPending(text=WAITS, again_ns=2 * SECOND)


def test_where_no_root_key_lies_an_administrator_brings_the_certificate(rig: Rig) -> None:
    rig.remove_root_key()
    token, request = rig.token(), wanting()
    assert rig.ask(token, request) == JoinPending(text=WAITS, again_ns=2 * SECOND)
    with pytest.raises(MessiahsError, match="no key of a root is here: sign the request"):
        play(rig.door.decide(XINU, is_approved=True))
    other = sign_request(rig.root, wanting().certificate_request, federation=CAMPUS, name=XINU)
    with pytest.raises(MessiahsError, match="not for the key of the request"):
        play(rig.door.decide(XINU, is_approved=True, certificate=other))
    signed = sign_request(rig.root, request.certificate_request, federation=CAMPUS, name=XINU)
    play(rig.door.decide(XINU, is_approved=True, certificate=signed))
    answer = rig.ask(token, request)
    assert isinstance(answer, JoinAccept)
    assert answer.certificate == signed


def test_a_certificate_of_another_root_is_not_taken(rig: Rig) -> None:
    rig.remove_root_key()
    request = wanting()
    rig.ask(rig.token(), request)
    foreign = sign_request(make_root(CAMPUS), request.certificate_request, federation=CAMPUS, name=XINU)
    with pytest.raises(MessiahsError, match="not of this site"):
        play(rig.door.decide(XINU, is_approved=True, certificate=foreign))


def test_a_member_of_the_site_shows_its_certificate_and_gets_no_other_one(rig: Rig) -> None:
    key, request = make_request(federation=CAMPUS, name=XINU)
    signed = sign_request(rig.root, request, federation=CAMPUS, name=XINU)
    rig.remove_root_key()
    member = replace(wanting(key=key), certificate=signed, is_primary=False)
    rig.members.known[XINU] = Neighbor(system=XINU, is_sibling=True)
    answer = rig.ask(rig.token(), member)
    assert answer == JoinAccept(certificate=b"", roots=rig.root.certificate, update_period_ns=2 * SECOND)
    assert rig.members.known[XINU] == Neighbor(system=XINU, is_child=True, is_sibling=True)


def test_a_sibling_that_the_policy_admits_is_no_child(rig: Rig) -> None:
    rig.members.rules = "allow sibling when $peer.name ne '' limit 1;".replace("'", '"')
    request = wanting(role=Relation.SIBLING)
    token = rig.token(role="sibling")
    assert denied(rig.ask(token, wanting())) == "the token is for a sibling"
    first = rig.ask(token, request)
    assert isinstance(first, JoinAccept)
    assert rig.members.known == {XINU: Neighbor(system=XINU, is_sibling=True)}
    assert rig.ask(token, request) == first
    another = rig.ask(rig.token(role="sibling"), wanting(BLAYS, role=Relation.SIBLING))
    assert isinstance(another, JoinDeny)
    assert another.text == "there are 1 already"
    assert denied(rig.ask(rig.token(), wanting(BLAYS))) == "nobody may join as child"
    del rig.members.known[XINU]
    assert "was removed since" in denied(rig.ask(token, request))


def test_a_shown_certificate_of_another_key_proves_nothing(rig: Rig) -> None:
    signed = sign_request(rig.root, wanting().certificate_request, federation=CAMPUS, name=XINU)
    assert "not for the key of the request" in denied(rig.ask(rig.token(), replace(wanting(), certificate=signed)))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_second_certificate_in_the_text_lends_nobody_its_name(rig: Rig, *, is_first: bool) -> None:
    key, request = make_request(federation=CAMPUS, name=XINU)
    own = sign_request(rig.root, request, federation=CAMPUS, name=XINU)
    foreign = sign_request(rig.root, wanting(BLAYS).certificate_request, federation=CAMPUS, name=BLAYS)
    both = foreign + own if is_first else own + foreign.replace(b" CERT", b" X509 CERT")
    for name in (XINU, BLAYS):
        text = denied(rig.ask(rig.token(), replace(wanting(name, key=key), certificate=both)))
        assert text == "this is not exactly one certificate in PEM"


@pytest.mark.parametrize("around", [b"\x1b]0;steered\x07\x1b[2J\n", "für uns\n".encode()])
def test_of_a_request_nothing_is_kept_but_the_request_itself(rig: Rig, around: bytes) -> None:
    rig.remove_root_key()
    request = wanting()
    answer = rig.ask(rig.token(), replace(request, certificate_request=around + request.certificate_request + around))
    assert answer == JoinPending(text=WAITS, again_ns=2 * SECOND)
    (asked,) = rig.door.book.waiting()
    assert asked.asked is not None
    assert asked.asked.request == request.certificate_request.decode("ascii")


def test_a_revoked_certificate_proves_nothing(rig: Rig) -> None:
    key, request = make_request(federation=CAMPUS, name=XINU)
    signed = sign_request(rig.root, request, federation=CAMPUS, name=XINU)
    rig.members.revoked = (signed,)
    member = replace(wanting(key=key), certificate=signed)
    assert denied(rig.ask(rig.token(), member)) == "the certificate of xinu was revoked"


def test_a_parent_does_not_become_a_child(rig: Rig) -> None:
    key, request = make_request(federation=CAMPUS, name=XINU)
    signed = sign_request(rig.root, request, federation=CAMPUS, name=XINU)
    rig.members.known[XINU] = Neighbor(system=XINU, is_parent=True)
    assert "cs has a neighbor xinu already" in denied(
        rig.ask(rig.token(), replace(wanting(key=key), certificate=signed))
    )


def test_there_are_so_many_tokens_and_old_ones_make_room(rig: Rig) -> None:
    old = rig.token()
    for number in range(TOKEN_LIMIT - 1):
        rig.door.book.put(replace(old, id=f"{number:032x}"))
    with pytest.raises(StoreError, match="there are 1024 tokens"):
        rig.token()
    rig.clock[0] += 26 * HOUR
    rig.token()
    assert len(rig.door.book.tokens()) == 1


def test_a_damaged_book_admits_nobody_and_is_not_replaced(rig: Rig) -> None:
    token = rig.token()
    file = rig.settings.directory / "join" / "tokens.json"
    file.write_bytes(b"{")
    rig.restart()
    answer = rig.ask(token, wanting())
    assert isinstance(answer, JoinPending)
    assert "its log says why" in answer.text
    with pytest.raises(StoreError, match="make new tokens"):
        rig.token()
    assert file.read_bytes() == b"{"


def test_nobody_joins_a_module_that_cannot_be_dialed(rig: Rig) -> None:
    rig.settings = replace(rig.settings, listen="")
    rig.restart()
    with pytest.raises(MessiahsError, match="nobody can dial cs"):
        rig.token()


def test_secrets_of_the_door_are_the_owners_alone(rig: Rig) -> None:
    rig.token()
    folder = rig.settings.directory / "join"
    modes = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes == {"authority.pem": 0o644, "authority.key": 0o600, "tokens.json": 0o600}
    # The secret of a token is in its text alone.
    assert b"PRIVATE" not in (folder / "tokens.json").read_bytes()


def test_a_token_that_was_accepted_is_marked_as_used(rig: Rig) -> None:
    token = rig.token()
    rig.ask(token, wanting())
    found = rig.door.book.find(token.id)
    assert found is not None
    assert found.phase is Phase.ADDED
