"""Names in certificates, and the roots that may vouch for them."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, serial_of
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.revocations import Revocations
from messiahs.channel.certificates.tls import RecordedRoots, TlsMaterial, issue, make_root
from messiahs.channel.certificates.trusted_roots import Presented, TrustedRoots, other_sites
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import OtherRoots
from messiahs.errors import UntrustedError

GATE = SystemId("gate")


def material(**recorded: tuple[RecordedRoots, ...]) -> TlsMaterial:
    links = tuple((SystemId(name), roots) for name, roots in recorded.items() if name != "introductions")
    introductions = recorded.get("introductions", ())
    nothing = b""
    always = OwnCertificate(
        file=Path("own.pem"), begins_at=datetime(2000, 1, 1, tzinfo=UTC), ends_at=datetime(9999, 1, 1, tzinfo=UTC)
    )
    return TlsMaterial(
        own=always,
        certificate=nothing,
        key=nothing,
        trust=b"own",
        trust_file=Path("root.pem"),
        links=links,
        introductions=introductions,
    )


def roots(content: bytes, *names: str) -> RecordedRoots:
    return RecordedRoots(file=Path("recorded.pem"), roots=content, names=names)


@pytest.mark.parametrize(
    ("uris", "dns_names", "named"),
    [
        (["messiahs://campus/cs"], ["cs"], "cs"),
        (["https://cs", "messiahs://campus/cs"], ["host.example.edu", "cs"], "cs"),
        (["messiahs://elsewhere/cs"], ["cs"], "its certificate names no system of campus"),
        (["messiahs://campus/cs", "messiahs://campus/xinu"], ["cs"], "its certificate names 2 systems: "),
        (["messiahs://campus/cs", "messiahs://elsewhere/cs"], ["cs"], "its certificate names 2 systems: "),
        (["messiahs://campus/cs/x"], ["cs/x"], "its certificate names no system of campus"),
        (["messiahs://campus/\ufffd"], ["\ufffd"], "its certificate names no system of campus"),
        (["messiahs://campus/cs\n"], ["cs\n"], "its certificate names no system of campus"),
        (["messiahs://campus/cs"], ["xinu"], "its certificate names cs as a URI, but not as a DNS name"),
        (["messiahs://campus/cs"], [], "its certificate names cs as a URI, but not as a DNS name"),
        ([], ["messiahs://campus/cs"], "its certificate names no system of campus"),
        ([], [], "its certificate names no system of campus"),
    ],
)
def test_one_uri_of_this_federation_and_the_same_dns_name_name_a_system(
    uris: list[str], dns_names: list[str], named: str
) -> None:
    trusted = TrustedRoots(material(), "campus")
    presented = Presented(chain=(), uris=tuple(uris), dns_names=tuple(dns_names))
    if named == "cs":
        assert trusted.name_in(presented) == "cs"
        return
    with pytest.raises(UntrustedError) as caught:
        trusted.name_in(presented)
    assert str(caught.value).startswith(named)


def test_grpc_lists_names_and_certificates_separately() -> None:
    pem = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
    context = {"x509_pem_cert": [pem % b"AAAA"], "x509_pem_cert_chain": [pem % b"AAAA" + pem % b"BBBB"]}
    found = Presented.to_grpc({**context, "peer_uri": [b"a\xff"], "peer_dns": [b"b"]})
    assert found == Presented(chain=(b"\0\0\0", b"\x04\x10\x41"), uris=("a\ufffd",), dns_names=("b",))


def test_a_link_s_own_roots_go_before_patterns_and_these_before_the_roots_of_this_site() -> None:
    tls = material(
        gate=(roots(b"old", "gate"), roots(b"new", "gate", "gate.*")),
        gate2=(roots(b"second", "gate*"),),
        introductions=(roots(b"introduced", "far", "gate.x"),),
    )
    assert tls.roots_for(GATE) == b"old\nnew"
    assert tls.roots_for(SystemId("gate2")) == b"second"
    assert tls.roots_for(SystemId("gate.x")) == b"new\nsecond\nintroduced"
    assert tls.roots_for(SystemId("far")) == b"introduced"
    assert tls.roots_for(SystemId("cs")) == b"own"
    assert tls.all_roots == b"own\nold\nnew\nsecond\nintroduced"
    assert [tls.has_other_roots(SystemId(name)) for name in ("gate", "far", "cs")] == [True, True, False]


def test_no_root_vouches_for_a_neighbor_whose_roots_may_not() -> None:
    tls = material(gate=(roots(b"theirs", "other"),), introductions=(roots(b"introduced", "*"),))
    assert tls.roots_for(GATE) == b""


def test_the_core_learns_which_roots_may_vouch_for_which_names_of_other_sites() -> None:
    first, second = (ssl.DER_cert_to_PEM_cert(each).encode() for each in (b"first", b"second"))
    linked, introduced = roots(first, "gate"), roots(second + b"\n" + first, "partner", "partner-*")
    one, other = (sha256(each).digest()[:16] for each in (b"first", b"second"))
    assert other_sites(material(gate=(linked,), introductions=(introduced,))) == (
        OtherRoots(roots=(one,), names=("gate",)),
        OtherRoots(roots=(other, one), names=("partner", "partner-*"), is_introduction=True),
    )


def test_a_certificate_that_was_read_before_is_refused_as_soon_as_it_is_revoked() -> None:
    chain = certificates_in(issue(make_root("campus"), federation="campus", name=GATE).certificate)
    presented = Presented(chain=chain, uris=(f"messiahs://campus/{GATE}",), dns_names=(GATE,))
    tls = TlsInForce(material())
    trusted = TrustedRoots(tls, "campus")
    for _ in range(2):
        assert trusted.check(presented).system == GATE
    revoked = Revocations(number=1, serials={serial_of(chain[0]): datetime.now(UTC)})
    tls.use(replace(material(), revocations=revoked))
    assert trusted.follow() == (GATE,)
    with pytest.raises(UntrustedError, match="revoked"):
        trusted.check(presented)
