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


def test_a_module_that_does_not_run_is_named_and_refused_where_it_was_asked_for(tmp_path: Path) -> None:
    directory = tmp_path / "pact"
    for name in ("south", "east"):
        (directory / name).mkdir(parents=True)
    record_this_process(directory / "south" / "daemon.pid")
    (directory / "east" / "settings.json").touch()
    file = tmp_path / "pact.yaml"
    systems = "".join(f"  {name}: {{reach: outbound}}\n" for name in ("south", "east", "elsewhere"))
    file.write_text(f"version: 1\nfederation: pact\nsystems:\n{systems}")
    topology = load_topology(file)
    todo = application_of(topology, file, directory=directory, only=())
    assert todo.running == ("south",)
    assert [each.partition(",")[0] for each in todo.notes] == ["east: not running here"]
    with pytest.raises(ClientError, match=r"east: not running here, or still starting; .* nothing was changed"):
        application_of(topology, file, directory=directory, only=("east", "south"))
    assert application_of(topology, file, directory=directory, only=("south",)).notes == ()
