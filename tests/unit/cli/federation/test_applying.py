"""`messiahs topology apply` before anything is changed."""

from pathlib import Path

import pytest

from messiahs.cli.federation.applying import application_of
from messiahs.config.topology.reading import load_topology
from messiahs.daemon.process.pid_files import record_this_process
from messiahs.errors import ClientError

_NORTH = "  north: {host: 127.0.0.1, port: 7101, parent: south, external: true, trust: north.pem}\n"
_SYSTEMS = {
    "lists what runs here as external": _NORTH,
    "lists nothing of what runs here": "",
}


@pytest.mark.parametrize("what", list(_SYSTEMS))
def test_the_file_of_another_site_is_refused(tmp_path: Path, what: str) -> None:
    (tmp_path / "pact" / "north").mkdir(parents=True)
    record_this_process(tmp_path / "pact" / "north" / "daemon.pid")
    file = tmp_path / "south.yaml"
    file.write_text(f"version: 1\nfederation: pact\nsystems:\n{_SYSTEMS[what]}  south: {{reach: outbound}}\n")
    with pytest.raises(ClientError) as refused:
        application_of(load_topology(file), file, directory=tmp_path / "pact", only=())
    assert str(refused.value) == f"{file} {what} (north): it may be the file of another site; nothing was changed"
