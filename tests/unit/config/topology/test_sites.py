"""Systems of other sites in a topology, and the files that a topology names."""

from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import issue, make_root
from messiahs.config.settings import ModuleSettings, TrustedFile, load_settings, save_settings
from messiahs.config.topology.neighbors import TlsPaths, module_settings, neighbors_of
from messiahs.config.topology.reading import load_topology, read_topology
from messiahs.config.topology.topology import Topology
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.errors import TopologyError

POLICIES = Path(__file__).parents[4] / "policies"
HEAD = "version: 1\nfederation: f\nsystems:\n"
GATE = "  gate: {external: true, parent: top, trust: anl.pem}\n"
SITES = f"""{HEAD}  top: {{host: top.example.edu, port: 7101}}
  cs: {{parent: top, host: "::1", port: 7102, machine: {{}}}}
{GATE}  far: {{external: true, host: far.example.org, port: 7101}}
  mine: {{parents: [top, far], primary: far, host: h, port: 1}}
"""


def read(body: str) -> Topology:
    return read_topology(HEAD + body, "/etc/t.yaml")


def settings_of(topology: Topology, name: str) -> ModuleSettings:
    addresses = {str(system.name): system.address for system in topology.systems if system.address is not None}
    tls = TlsPaths(certificate_file=Path("/c"), key_file=Path("/k"), trust_file=Path("/t"))
    return module_settings(topology, name, addresses=addresses, state_directory=Path("/s"), tls=tls)


def problems_of(text: str, file: Path, *, reads_trust: bool = False) -> list[str]:
    file.write_text(text)
    with pytest.raises(TopologyError) as caught:
        load_topology(file, reads_trust=reads_trust)
    return [problem.removeprefix(f"{file}:") for problem in caught.value.problems]


def test_an_external_child_dials_us_and_an_external_parent_is_dialed_each_with_its_roots(tmp_path: Path) -> None:
    topology = read_topology(SITES, "/etc/t.yaml")
    top = {link.neighbor.system: link for link in settings_of(topology, "top").neighbors}
    assert top[SystemId("gate")].address is None
    assert top[SystemId("gate")].trust == (TrustedFile(file=Path("/etc/anl.pem"), names=("gate",)),)
    assert top[SystemId("cs")].trust == ()
    mine = settings_of(topology, "mine")
    far = next(link for link in mine.neighbors if link.neighbor.system == "far")
    assert (far.neighbor.is_primary_parent, far.address, far.trust) == (True, "far.example.org:7101", ())
    save_settings(mine, tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json") == mine


def test_the_address_of_a_child_may_be_an_ipv6_one() -> None:
    assert settings_of(read_topology(SITES, "t.yaml"), "cs").listen == "[::1]:7102"


def test_siblings_at_different_sites_are_not_linked() -> None:
    topology = read_topology(SITES, "t.yaml")
    top = Neighbor(system=SystemId("top"), is_parent=True, is_primary_parent=True)
    assert neighbors_of(topology, "cs") == neighbors_of(topology, "gate") == (top,)


def test_what_is_left_without_other_sites_has_primary_parents_of_its_own() -> None:
    left = read_topology(SITES, "t.yaml").without_externals()
    assert [system.name for system in left.systems] == ["top", "cs", "mine"]
    assert (left.system("mine").parents, left.system("mine").primary_parent) == (("top",), "top")


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        ("  a: {external: 1}\n", "4:17", "`external` is true or false, not `1`"),
        ("  a: {external: true, machine: {}}\n", "4:23", "an external system has its `machine` in its own site's file"),
        ("  a: {external: true, policy: p}\n", "4:23", "an external system has its `policy` in its own site's file"),
        ("  a: {trust: a.pem}\n", "4:7", "`trust` is for external systems"),
        ("  a: {external: true, trust: 7}\n", "4:30", "`trust` takes the name of a file"),
        ("  a: {external: true}\n  b: {parent: a}\n", "4:3", "`a` is external and the parent of `b`, which dials it"),
        ("  a: {external: true, host: h, port: 1}\n  b: {host: h, port: 1}\n", "5:22", "h:1 is the address of `a`"),
        ("  a: {external: true, parent: b}\n", "4:31", "there is no system `b`"),
        (
            "  a: {external: true}\n  b: {host: h, port: 1}\n  c: {host: h, port: 2, parent: b}\n",
            "4:3",
            "`a` is run by another site, and no system of this site has a link with it: add `parent: ` and one of b, c",
        ),
        ("  a: {external: true, trust: []}\n", "4:30", "`trust` takes the name of a file"),
        ("  a: {external: true, trust: [a.pem, 7]}\n", "4:38", "`trust` takes the name of a file"),
        ("  a: {external: true, trust: {names: [a]}}\n", "4:30", "`trust` needs `file: FILE` here"),
        ("  a: {external: true, trust: {file: f, roots: g}}\n", "4:40", "unknown key `roots`"),
        ("  a: {external: true, trust: {file: f, names: b}}\n", "4:47", "`names` of `trust` takes a list of names"),
        ("  a: {external: true, trust: {file: f, names: [a, B]}}\n", "4:51", "`B` matches no name"),
        ("  a: {external: true, trust: {file: f, names: [b-*]}}\n", "4:30", "none of these roots may vouch for `a`"),
        ("  a: {external: true, trust: [{file: f, names: ['*']}]}\n  b: {}\n", "4:49", "`*` matches `b`, a system of"),
        ("  a: {policy: [x]}\n", "4:7", "`policy` takes the name of a file"),
    ],
)
def test_a_mistake_is_reported_with_its_position(body: str, place: str, text: str, tmp_path: Path) -> None:
    found = problems_of(HEAD + body, tmp_path / "t.yaml")
    assert [problem for problem in found if problem.startswith(f"{place}: {text}")]


@pytest.mark.parametrize(
    ("listed", "place", "text"),
    [
        ("their.pem", "3:16", "`introductions` takes a list of {file: FILE, names: [PATTERN, ...]}"),
        ("[their.pem]", "3:17", "`introductions` takes a list"),
        ("[{file: f}]", "3:17", "`introductions` needs `names: [PATTERN, ...]` here"),
        ("[{names: [b]}]", "3:17", "`introductions` needs `file: FILE` here"),
        ("[{file: f, names: []}]", "3:34", "`names` of `introductions` takes a list of names"),
        ("[{file: f, names: [b, 't*']}]", "3:38", "`t*` matches `top`, a system of this site"),
    ],
)
def test_a_mistake_in_an_introduction_is_reported_with_its_position(
    listed: str, place: str, text: str, tmp_path: Path
) -> None:
    body = f"version: 1\nfederation: f\nintroductions: {listed}\nsystems:\n  top: {{}}\n"
    (found,) = problems_of(body, tmp_path / "t.yaml")
    assert found.startswith(f"{place}: {text}")


def test_a_link_has_several_roots_and_a_site_is_introduced_to_every_module(tmp_path: Path) -> None:
    text = """version: 1
federation: f
introductions:
  - {file: b.pem, names: [b, "b.*"]}
systems:
  top: {host: h, port: 1}
  low: {host: h, port: 2, parent: top}
  gate:
    external: true
    parent: top
    trust:
      - old.pem
      - {file: /new.pem, names: [gate, "gate.*"]}
"""
    topology = read_topology(text, "/etc/t.yaml")
    top, low = settings_of(topology, "top"), settings_of(topology, "low")
    (gate,) = (link for link in top.neighbors if link.neighbor.system == "gate")
    assert gate.trust == (
        TrustedFile(file=Path("/etc/old.pem"), names=("gate",)),
        TrustedFile(file=Path("/new.pem"), names=("gate", "gate.*")),
    )
    assert top.introductions == low.introductions == (TrustedFile(file=Path("/etc/b.pem"), names=("b", "b.*")),)
    save_settings(top, tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json") == top
    assert topology.without_externals().introductions == ()


@pytest.mark.parametrize(
    ("line", "trusts"), [("", False), ("trusts_relays: true\n", True), ("trusts_relays: false\n", False)]
)
def test_a_site_may_trust_third_sites_with_its_bytes(line: str, *, trusts: bool, tmp_path: Path) -> None:
    topology = read_topology(f"version: 1\nfederation: f\n{line}systems:\n  top: {{host: h, port: 1}}\n", "/etc/t.yaml")
    top = settings_of(topology, "top")
    assert top.trusts_relays is trusts
    save_settings(top, tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json") == top


def test_trust_in_third_sites_is_true_or_false(tmp_path: Path) -> None:
    body = "version: 1\nfederation: f\ntrusts_relays: maybe\nsystems:\n  top: {}\n"
    (found,) = problems_of(body, tmp_path / "t.yaml")
    assert found.startswith("3:16: `trusts_relays` takes true or false")


def test_every_file_of_roots_must_be_there(tmp_path: Path) -> None:
    text = """version: 1
federation: f
introductions: [{file: one.pem, names: [b]}]
systems: {gate: {external: true, trust: [two.pem, {file: three.pem}], parent: top}, top: {}}
"""
    found = problems_of(text, tmp_path / "t.yaml", reads_trust=True)
    assert [problem.partition(": ")[0] for problem in found] == ["3:24", "4:42", "4:58"]


def test_roots_are_read_only_where_they_are_wanted(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(SITES)
    assert [each.file for each in load_topology(file).system("gate").trust] == [tmp_path / "anl.pem"]
    text = f"the trust file {tmp_path / 'anl.pem'} cannot be read: No such file or directory; "
    (found,) = problems_of(SITES, file, reads_trust=True)
    assert found.startswith(f"6:46: {text}")
    (tmp_path / "anl.pem").write_bytes(make_root("f").certificate)
    assert load_topology(file, reads_trust=True).externals


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff\0"]
)
def test_a_trust_file_must_hold_certificates(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "anl.pem").write_bytes(content)
    (found,) = problems_of(HEAD + "  top: {}\n" + GATE, tmp_path / "t.yaml", reads_trust=True)
    assert found.startswith(f"5:46: the trust file {tmp_path / 'anl.pem'} contains no certificate in PEM")


@pytest.mark.parametrize("has_certificate", [False, True])
def test_a_private_key_in_place_of_a_root_or_with_it_is_named_as_such(*, has_certificate: bool, tmp_path: Path) -> None:
    root = make_root("f")
    (tmp_path / "anl.pem").write_bytes(root.certificate + root.key if has_certificate else root.key)
    (found,) = problems_of(HEAD + "  top: {}\n" + GATE, tmp_path / "t.yaml", reads_trust=True)
    assert found.startswith(f"5:46: the trust file {tmp_path / 'anl.pem'} contains a private key: ")


def test_the_certificate_of_a_module_is_no_root(tmp_path: Path) -> None:
    issued = issue(make_root("f"), federation="f", name="anl")
    (tmp_path / "anl.pem").write_bytes(issued.certificate)
    (found,) = problems_of(HEAD + "  top: {}\n" + GATE, tmp_path / "t.yaml", reads_trust=True)
    assert found.startswith(f"5:46: the trust file {tmp_path / 'anl.pem'} contains a certificate that is no root")


def test_a_policy_of_a_system_goes_before_the_default_one_and_both_into_the_settings(tmp_path: Path) -> None:
    for name in ("all", "own"):
        (tmp_path / f"{name}.policy").write_bytes((POLICIES / "open.policy").read_bytes())
    file = tmp_path / "t.yaml"
    file.write_text(
        "version: 1\nfederation: f\ndefaults: {policy: all.policy}\nsystems:\n"
        "  a: {host: h, port: 1, policy: ./own.policy}\n  b: {host: h, port: 2}\n  c: {external: true, parent: a}\n"
    )
    topology = load_topology(file)
    assert settings_of(topology, "a").policy_file == tmp_path / "own.policy"
    assert settings_of(topology, "b").policy_file == tmp_path / "all.policy"
    assert topology.system("c").policy_file is None
    save_settings(settings_of(topology, "a"), tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json").policy_file == tmp_path / "own.policy"


def test_mistakes_of_a_policy_are_reported_once_with_their_position_after_all_others(tmp_path: Path) -> None:
    (tmp_path / "bad.policy").write_text("\naccpet {\n}\n")
    text = f"{HEAD}  a: {{policy: bad.policy}}\n  b: {{policy: bad.policy, parent: x}}\n  c: {{policy: no.policy}}\n"
    file = tmp_path / "t.yaml"
    parent, missing, *wrong = problems_of(text, file)
    assert parent.startswith("5:35: there is no system `x`")
    assert missing == f"6:15: there is no policy file {tmp_path / 'no.policy'}"
    assert wrong[0].startswith(f"{tmp_path / 'bad.policy'}:2:1: error[")
    assert len(wrong) == len(set(wrong))
