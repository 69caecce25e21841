"""The key of a site's root was stolen: once that root is removed, its owner gets in nowhere, whatever it has signed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.channel.certificates.requests import make_request, sign_request
from messiahs.channel.certificates.tls import KeyAndCertificate, make_root, write
from tests.live.joiners import JOINED_BY_POLICY, Campus, campus
from tests.live.test_certificates import joined, linked, succeeded
from tests.waiting import eventually

pytestmark = pytest.mark.live


@pytest.fixture
def open_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start a federation whose policy lets everybody join."""
    with campus(tmp_path, join=JOINED_BY_POLICY) as made:
        yield made


def test_a_root_that_has_signed_the_list_of_revoked_certificates_opens_no_door_after_its_removal(
    open_campus: Campus,
) -> None:
    evil, command = joined(open_campus, "evil"), open_campus.federation.run
    directory = open_campus.federation.state / "campus"
    root, key = directory / "tls" / "root.pem", directory / "tls" / "root.key"
    stolen = KeyAndCertificate(key=key.read_bytes(), certificate=root.read_bytes())
    assert "revoked evil" in succeeded(command, "certificate", "revoke", "evil")
    eventually(lambda: linked(open_campus) == [], "the end of the link")
    evil.end()
    write(make_root("campus"), certificate_file=root, key_file=key)
    log = open_campus.federation.folder("cs") / "module.log"
    eventually(lambda: "no root of this site has signed the list of revoked certificates" in log.read_text(), log)
    succeeded(command, "certificate", "renew", "cs")
    # The thief signs another key for the name, and trusts both roots.
    own_key, request = make_request(federation="campus", name="evil")
    certificate = sign_request(stolen, request, federation="campus", name="evil")
    files = evil.directory / "certificate.pem", evil.directory / "key.pem"
    write(KeyAndCertificate(key=own_key, certificate=certificate), certificate_file=files[0], key_file=files[1])
    own_roots = evil.folder / "campus" / "tls" / "root.pem"
    own_roots.write_bytes(stolen.certificate + root.read_bytes())
    evil.start()
    told = evil.directory / "module.log"
    eventually(lambda: "cs: it hung up on this module, because it does not trust it" in told.read_text(), told)
    assert linked(open_campus) == []
