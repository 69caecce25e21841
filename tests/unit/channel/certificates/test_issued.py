"""The record of the names that a root has certified."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.issued import ISSUED_FILE, Issued, IssuedCertificates
from messiahs.cli.federation.certificates import make_certificates
from messiahs.errors import StoreError

NOW = datetime.now(UTC)


def entry(serial: str, *, key: str = "aa", days: int = 10) -> Issued:
    return Issued(
        name="cs",
        serial=serial,
        key=key,
        fingerprint="ff",
        begins_at=NOW - timedelta(days=30),
        ends_at=NOW + timedelta(days=days),
        pem=f"pem {serial}",
    )


def test_a_name_has_the_key_of_its_last_certificate_and_only_that_one_is_kept_whole(tmp_path: Path) -> None:
    found = IssuedCertificates().having(entry("1")).having(entry("2", key="bb"), is_elsewhere=True)
    found.write(tmp_path)
    assert (tmp_path / ISSUED_FILE).stat().st_mode & 0o777 == 0o600
    assert IssuedCertificates.read(tmp_path) == found
    assert (found.keys, found.elsewhere) == ({"cs": "bb"}, ("cs",))
    assert [(each.serial, each.pem) for each in found.of("cs")] == [("1", ""), ("2", "pem 2")]
    assert found.having(entry("3", key="bb")).elsewhere == ()


def test_expired_certificates_are_dropped_except_for_the_newest_of_a_name() -> None:
    found = IssuedCertificates().having(entry("1", days=-2)).having(entry("2", days=-1))
    assert [each.serial for each in found.of("cs")] == ["2"]
    assert [each.serial for each in found.having(entry("3")).of("cs")] == ["3"]


def test_a_certificate_that_somebody_shows_is_noted_once_and_is_older_than_all_others() -> None:
    found = IssuedCertificates().having(entry("2", key="bb")).knowing(entry("1")).knowing(entry("1"))
    assert [(each.serial, each.pem) for each in found.of("cs")] == [("1", ""), ("2", "pem 2")]
    assert found.keys == {"cs": "bb"}
    assert found.knowing(entry("0", days=-1)) == found
    first = IssuedCertificates().knowing(entry("1"))
    assert (first.keys, first.of("cs")) == ({"cs": "aa"}, (entry("1"),))


def test_certificates_that_have_expired_or_were_revoked_are_not_valid() -> None:
    found = IssuedCertificates(certificates=(entry("1"), entry("2", days=-1), replace(entry("3"), revoked_at=NOW)))
    assert [each.serial for each in found.valid("cs", NOW)] == ["1"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"keys": 5}', b'{"keys": {"xinu": "zz"}}', b'{"keys": {"xinu": 5}}'])
def test_a_damaged_record_is_no_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ISSUED_FILE).write_bytes(content)
    with pytest.raises(StoreError, match=r"issued\.json cannot be read"):
        IssuedCertificates.read(tmp_path)


def test_certificates_of_a_topology_are_recorded(tmp_path: Path) -> None:
    directory = tmp_path / "campus"
    directory.mkdir()
    make_certificates(directory, ["cs", "xinu"])
    for name in ("cs", "xinu"):
        (certificate,) = certificates_in((directory / name / "certificate.pem").read_bytes())
        assert IssuedCertificates.read(directory / "tls").keys[name] == key_fingerprint(certificate).hex()
