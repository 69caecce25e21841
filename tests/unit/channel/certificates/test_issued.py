"""The record of the names that a root has certified."""

from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.issued import ISSUED_FILE, alone, forget_issued, issued_key, note_issued
from messiahs.cli.federation.certificates import make_certificates
from messiahs.errors import StoreError

KEY, OTHER = bytes(16), bytes(range(16))


def test_a_name_has_the_key_that_was_noted_until_it_is_forgotten(tmp_path: Path) -> None:
    assert issued_key(tmp_path, "xinu") is None
    with alone(tmp_path):
        note_issued(tmp_path, {"xinu": KEY})
        note_issued(tmp_path, {"cs": OTHER})
    assert (issued_key(tmp_path, "xinu"), issued_key(tmp_path, "cs")) == (KEY, OTHER)
    assert (tmp_path / ISSUED_FILE).stat().st_mode & 0o777 == 0o600
    with alone(tmp_path):
        forget_issued(tmp_path, "xinu")
    assert (issued_key(tmp_path, "xinu"), issued_key(tmp_path, "cs")) == (None, OTHER)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"keys": 5}', b'{"keys": {"xinu": "zz"}}', b'{"keys": {"xinu": 5}}'])
def test_a_damaged_record_is_no_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ISSUED_FILE).write_bytes(content)
    with pytest.raises(StoreError, match=r"issued\.json cannot be read"):
        issued_key(tmp_path, "xinu")


def test_certificates_of_a_topology_are_recorded(tmp_path: Path) -> None:
    directory = tmp_path / "campus"
    directory.mkdir()
    make_certificates(directory, ["cs", "xinu"])
    for name in ("cs", "xinu"):
        (certificate,) = certificates_in((directory / name / "certificate.pem").read_bytes())
        assert issued_key(directory / "tls", name) == key_fingerprint(certificate)
