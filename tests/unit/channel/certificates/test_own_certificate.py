"""The certificate of this module: what makes it useless, and when that is said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from messiahs.channel.certificates.fingerprints import validity_of
from messiahs.channel.certificates.own_certificate import NOTED_BEFORE, OwnCertificate, problem_with_files
from messiahs.channel.certificates.tls import KeyAndCertificate, write
from tests.contract.authorities import DAY, Authority, Wanted, naming

SITE = Authority("ours")


def problem(folder: Path, made: KeyAndCertificate) -> str:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    write(made, certificate_file=certificate, key_file=key)
    return problem_with_files(certificate, key, federation="campus", name="cs")


@pytest.mark.parametrize("days", [(-1, 1), (-1, 40_000)])
def test_the_validity_is_what_cryptography_reads_also_after_2049(days: tuple[int, int]) -> None:
    certificate = x509.load_pem_x509_certificate(SITE.sign(naming("cs", days=days)).certificate)
    found = validity_of(certificate.public_bytes(Encoding.DER))
    assert found == (certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def test_a_certificate_is_noted_in_its_last_thirty_days_and_a_problem_outside_its_period() -> None:
    begins_at = datetime(2026, 1, 1, tzinfo=UTC)
    own = OwnCertificate(file=Path("/c.pem"), begins_at=begins_at, ends_at=begins_at + 100 * DAY)
    late, second = own.ends_at - NOTED_BEFORE, timedelta(seconds=1)
    assert own.note(begins_at) == own.note(late - second) == own.problem(own.ends_at) == ""
    assert own.note(late).startswith(
        "the certificate of this module, /c.pem, expires at 2026-04-11 00:00 UTC; `messiahs"
    )
    assert (
        own.problem(own.ends_at + second) == "the certificate of this module, /c.pem, expired at 2026-04-11 00:00 UTC"
    )
    assert own.note(own.ends_at + second).startswith(
        f"{own.problem(own.ends_at + second)}; `messiahs certificate renew`"
    )
    early = begins_at - DAY
    assert "/c.pem, is valid only from 2026-01-01 00:00 UTC on, and it is 2025-12-31 00:00 UTC here" in own.note(early)


def test_a_usable_certificate_has_no_problem(tmp_path: Path) -> None:
    assert problem(tmp_path, SITE.sign(naming("cs"))) == ""


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (naming("cs", days=(-2, -1)), "expired at"),
        (naming("cs", days=(1, 2)), "is valid only from"),
        (naming("xinu"), "names messiahs://campus/xinu, xinu, not URI:messiahs://campus/cs and DNS:cs"),
        (naming("cs", federation="lab"), "names messiahs://lab/cs, cs, not URI:messiahs://campus/cs and DNS:cs"),
        (Wanted(uris=("messiahs://campus/cs",), dns_names=()), "names messiahs://campus/cs, not"),
        (Wanted(uris=("messiahs://campus/cs", "messiahs://campus/xinu"), dns_names=("cs",)), "campus/xinu, cs, not"),
        (Wanted(uris=(), dns_names=("other",)), "names other, not"),
        (replace(naming("cs"), is_authority=True), "is that of an authority, which no other module accepts"),
    ],
)
def test_what_makes_a_certificate_useless_is_said_with_its_file(wanted: Wanted, text: str, tmp_path: Path) -> None:
    found = problem(tmp_path, SITE.sign(wanted))
    assert str(tmp_path / "certificate.pem") in found
    assert text in found


def test_a_key_of_another_certificate_and_damaged_or_missing_files_are_named(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    one, other = SITE.sign(naming("cs")), SITE.sign(naming("cs"))
    mixed = KeyAndCertificate(key=other.key, certificate=one.certificate)
    assert problem(tmp_path, mixed) == f"the certificate {certificate} is not for the key in {key}"
    damaged = KeyAndCertificate(key=b"garbage", certificate=one.certificate)
    assert f"{key} contains no private key" in problem(tmp_path, damaged)
    empty = KeyAndCertificate(key=one.key, certificate=b"garbage")
    assert f"{certificate} contains no certificate" in problem(tmp_path, empty)
    key.unlink()
    certificate.write_bytes(one.certificate)
    assert problem_with_files(certificate, key, federation="campus", name="cs") == f"{key} is missing"
    certificate.unlink()
    assert problem_with_files(certificate, key, federation="campus", name="cs") == f"{certificate} is missing"
