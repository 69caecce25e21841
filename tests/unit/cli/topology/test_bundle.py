"""`messiahs topology bundle`: what it writes, what it leaves alone, what it refuses."""

import json
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.cli.main import main
from messiahs.config.topology.reading import load_topology

_FILE = """
# The north.
version: 1
federation: pact
defaults: {policy: ../shared.policy}
introductions: [{file: east.pem, names: [east-*]}]
systems:
  south: {host: south.example, port: 7301, external: true, trust: {file: roots/south.pem, names: [south]}}
  north: {host: gate.example, port: 7301, parent: south}  # the gate
  group: {host: gate.example, port: 7303, parent: north}
  desk:  {host: desk.example, port: 7301, parent: group, machine: {slots: 2}, policy: shared.policy}
  lab:   {reach: outbound, parent: group, machine: {slots: 1}}
"""
_POLICY = 'policy "{}" version 1;\naccept from any {{}}\n'


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """Write a topology, with two policies of one name and the roots of two other sites."""
    folder = tmp_path / "site"
    (folder / "roots").mkdir(parents=True)
    (tmp_path / "shared.policy").write_text(_POLICY.format("for all"))
    (folder / "shared.policy").write_text(_POLICY.format("for the desk"))
    for name in ("east.pem", "roots/south.pem"):
        (folder / name).write_bytes(make_root(name).certificate)
    (folder / "north.yaml").write_text(_FILE)
    return folder / "north.yaml"


def _bundle(topology: Path, out: Path, *words: str) -> int:
    return main(["topology", "bundle", str(topology), "--out", str(out), *words])


def _files(out: Path) -> dict[str, bytes]:
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}


def test_each_host_gets_a_folder_with_all_that_its_modules_need(topology: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    assert _bundle(topology, out) == 0
    assert sorted(each.name for each in out.iterdir()) == ["bundle.json", "desk.example", "gate.example", "lab"]
    assert sorted(_files(out / "gate.example")) == [
        "README.md",
        "policies/shared-2.policy",
        "policies/shared.policy",
        "system/messiahs-group.service",
        "system/messiahs-north.service",
        "topology.yaml",
        "trust/east.pem",
        "trust/south.pem",
        "user/messiahs-group.service",
        "user/messiahs-north.service",
    ]


def test_the_topology_of_a_bundle_describes_the_same_systems_wherever_it_lies(topology: Path, tmp_path: Path) -> None:
    _bundle(topology, tmp_path / "dist")
    moved = tmp_path / "elsewhere"
    (tmp_path / "dist" / "desk.example").rename(moved)
    loaded, original = load_topology(moved / "topology.yaml", reads_trust=True), load_topology(topology)
    assert [system.parents for system in loaded.systems] == [system.parents for system in original.systems]
    for mine, theirs in zip(loaded.systems, original.systems, strict=True):
        for file, source in ((mine.policy_file, theirs.policy_file), *_pairs(mine.trust, theirs.trust)):
            assert (file is None) == (source is None)
            if file is not None and source is not None:
                assert file.is_relative_to(moved)
                assert file.read_bytes() == source.read_bytes()
    assert "# the gate" in (moved / "topology.yaml").read_text()


def _pairs(mine: "tuple[object, ...]", theirs: "tuple[object, ...]") -> "list[tuple[Path, Path]]":
    return [(one.file, other.file) for one, other in zip(mine, theirs, strict=True)]  # type: ignore[attr-defined]


def test_the_same_file_gives_the_same_bundle_byte_by_byte(topology: Path, tmp_path: Path) -> None:
    _bundle(topology, tmp_path / "one")
    _bundle(topology, tmp_path / "two")
    assert _files(tmp_path / "one") == _files(tmp_path / "two")


def test_no_bundle_contains_a_private_key(topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _bundle(topology, tmp_path / "dist")
    assert not [name for name, content in _files(tmp_path / "dist").items() if b"PRIVATE KEY" in content]
    root = make_root("south")
    (topology.parent / "roots" / "south.pem").write_bytes(root.certificate + root.key)
    assert _bundle(topology, tmp_path / "other") == 1
    assert "contains a private key" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_machine_host_runs_as_root_and_every_other_one_as_its_own_account(topology: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    _bundle(topology, out, "--command", "/opt/bin/messiahs")
    gate = (out / "gate.example" / "system" / "messiahs-north.service").read_text()
    desk = (out / "desk.example" / "system" / "messiahs-desk.service").read_text()
    assert "User=messiahs" in gate
    assert "CapabilityBoundingSet=\n" in gate
    assert "User=" not in desk
    assert "CAP_SETUID" in desk
    # Tasks have limits where the module can write to control groups.
    assert "Delegate=yes\n" in desk
    assert "ProtectControlGroups" not in desk
    assert "ProtectControlGroups=yes" in gate
    for unit in (gate, desk):
        assert {"Type=notify", "KillMode=process", "NoNewPrivileges=yes", "WatchdogSec=60"} <= set(unit.splitlines())
        assert "ExecStart=/opt/bin/messiahs module run " in unit


def test_the_page_of_a_host_has_five_steps_that_name_its_modules(topology: Path, tmp_path: Path) -> None:
    _bundle(topology, tmp_path / "dist")
    page = (tmp_path / "dist" / "gate.example" / "README.md").read_text()
    steps = [line for line in page.splitlines() if line[:1].isdigit()]
    assert [step[:2] for step in steps] == ["1.", "2.", "3.", "4.", "5."]
    assert "certificate request north" in steps[1]
    assert "certificate request group" in steps[1]
    # The key of the root is in the state of the units, not in that of whoever types this.
    assert "`messiahs certificate sign group.csr --state /var/lib/messiahs`" in steps[2]
    assert "`messiahs doctor --module group --state /var/lib/messiahs`" in steps[4]
    assert "systemctl enable --now messiahs-north messiahs-group" in page.replace("daemon-reload && ", "")


def test_an_earlier_bundle_is_replaced_and_what_lies_beside_it_stays(topology: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    _bundle(topology, out)
    (out / "desk.example" / "desk.csr").write_text("a request")
    topology.write_text(_FILE.replace("desk.example", "tower.example").replace("  lab:", "  den:"))
    assert _bundle(topology, out) == 0
    assert sorted(each.name for each in out.iterdir()) == [
        *("bundle.json", "den", "desk.example", "gate.example", "tower.example"),
    ]
    assert list(_files(out / "desk.example")) == ["desk.csr"]


def test_a_folder_with_something_else_is_refused(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dist"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    assert _bundle(topology, out) == 1
    assert "holds no bundle" in capsys.readouterr().err
    assert list(_files(out)) == ["thesis.tex"]


def test_a_record_that_names_other_files_removes_none_of_them(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = tmp_path / "dist", tmp_path / "other"
    out.mkdir()
    other.write_text("not yours")
    (out / "bundle.json").write_text(json.dumps({"files": {"../other": ""}}))
    assert _bundle(topology, out) == 1
    assert "outside" in capsys.readouterr().err
    assert other.read_text() == "not yours"


@pytest.mark.parametrize("link", ["desk.example", "desk.example/system", "desk.example/topology.yaml", "bundle.json"])
def test_no_symbolic_link_leads_out_of_the_folder(
    topology: Path, tmp_path: Path, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, elsewhere = tmp_path / "dist", tmp_path / "elsewhere"
    assert _bundle(topology, out) == 0
    (out / link).rename(elsewhere)
    (out / link).symlink_to(elsewhere)
    before = _files(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()
    topology.write_text(_FILE.replace("7303", "7304"))
    assert _bundle(topology, out) == 1
    assert f"{out / link} is a symbolic link, which no bundle follows: remove it" in capsys.readouterr().err
    assert before == (_files(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes())


def test_a_system_that_nobody_could_dial_is_named(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology.write_text(_FILE.replace("group: {host: gate.example, port: 7303, ", "group: {"))
    assert _bundle(topology, tmp_path / "dist") == 1
    assert "nobody could dial group" in capsys.readouterr().err


def test_the_hosts_and_their_modules_are_printed(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _bundle(topology, tmp_path / "dist", "--json") == 0
    assert json.loads(capsys.readouterr().out)["hosts"] == {
        "desk.example": ["desk"],
        "gate.example": ["north", "group"],
        "lab": ["lab"],
    }


def test_the_roots_of_a_collector_are_in_each_folder(topology: Path, tmp_path: Path) -> None:
    (topology.parent / "roots" / "east.pem").write_bytes(make_root("collector").certificate)
    served = 'policy: shared.policy, otlp: {endpoint: "https://collector/v1/traces", roots: roots/east.pem}'
    topology.write_text(_FILE.replace("policy: shared.policy}", f"{served}}}"))
    assert "otlp" in topology.read_text()
    assert _bundle(topology, tmp_path / "dist") == 0
    made = tmp_path / "dist" / "desk.example"
    otlp = load_topology(made / "topology.yaml").system("desk").otlp
    assert otlp is not None
    assert otlp.roots == made / "trust" / "east.pem"
    assert otlp.roots.read_bytes() == (topology.parent / "roots" / "east.pem").read_bytes()


def test_the_roots_of_those_who_may_ask_for_metrics_are_in_each_folder(topology: Path, tmp_path: Path) -> None:
    (topology.parent / "roots" / "east.pem").write_bytes(make_root("monitoring").certificate)
    served = 'policy: shared.policy, metrics: {listen: "10.0.0.5:9464", client_roots: roots/east.pem}'
    topology.write_text(_FILE.replace("policy: shared.policy}", f"{served}}}"))
    assert "metrics" in topology.read_text()
    assert _bundle(topology, tmp_path / "dist") == 0
    made = tmp_path / "dist" / "desk.example"
    metrics = load_topology(made / "topology.yaml").system("desk").metrics
    assert metrics is not None
    assert metrics.client_roots == made / "trust" / "east.pem"
    assert metrics.client_roots.read_bytes() == (topology.parent / "roots" / "east.pem").read_bytes()
