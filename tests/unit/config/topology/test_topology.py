"""The topology file: its meaning, and the place of each mistake in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.config.settings import AUTOMATIC, ByteSettings, MachineSettings, load_settings, save_settings
from messiahs.config.topology.neighbors import (
    Neighborhoods,
    TlsPaths,
    module_settings,
    neighbors_of,
)
from messiahs.config.topology.reading import load_topology, read_topology
from messiahs.config.topology.topology import Topology
from messiahs.core.interface.limits import SIBLINGS
from messiahs.core.model.attributes import Value
from messiahs.core.model.neighbors import Neighbor
from messiahs.errors import MessiahsError, TopologyError

EXAMPLES = Path(__file__).parents[4] / "topologies"
HEAD = "version: 1\nfederation: f\nsystems:\n"
TLS = TlsPaths(certificate_file=Path("/c"), key_file=Path("/k"), trust_file=Path("/t"))


def read(body: str) -> Topology:
    return read_topology(HEAD + body, "t.yaml")


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(TopologyError) as caught:
        read_topology(text, "t.yaml")
    return caught.value.problems


def test_a_parent_alone_is_the_primary_parent() -> None:
    topology = read("  a: {}\n  b: {parent: a}\n  c: {parents: [a]}\n")
    assert [system.primary_parent for system in topology.systems] == [None, "a", "a"]


def test_bounds_on_bytes_have_defaults_and_are_read_with_units() -> None:
    topology = read(
        "  a: {bytes: {cache: 2GiB, streams: 8, rate: 50MiB, daily: 1TB, outputs: 4GiB}}\n"
        "  b: {parent: a, bytes: {cache: 0B}}\n"
    )
    stated = ByteSettings(
        cache_bytes=2 << 30, streams=8, rate_bytes=50 << 20, daily_bytes=10**12, outputs_bytes=4 << 30
    )
    assert topology.system("a").byte_limits == stated
    assert topology.system("b").byte_limits == ByteSettings(cache_bytes=0)


def test_a_fixed_machine_is_read_in_the_units_of_the_catalogue() -> None:
    topology = read(
        "  a: {machine: {probe: fixed, slots: 2, avail_mem: 8GiB, load: 12.5%, wait_time: 2min, os: Linux}}\n"
    )
    said: dict[str, Value] = {"slots": 2, "avail_mem": 8 * 2**30, "load": 1250, "wait_time": 120, "os": "Linux"}
    assert topology.system("a").machine == MachineSettings(isolation=AUTOMATIC, probe="fixed", attributes=said)


def test_a_measured_machine_may_say_its_slots_and_extensions() -> None:
    topology = read("  a: {machine: {slots: 4, attributes: {cpu: sparc, rack: 7}}}\n")
    assert topology.system("a").machine == MachineSettings(
        isolation=AUTOMATIC, attributes={"slots": 4, "cpu": "sparc", "rack": 7}
    )


def test_the_update_period_may_be_in_milliseconds() -> None:
    text = "version: 1\nfederation: f\ndefaults: {update_period: 500ms}\nsystems: {a: {}}\n"
    assert read_topology(text, "t").update_period_ns == 500_000_000


@pytest.mark.parametrize("name", sorted(file.stem for file in EXAMPLES.glob("*.yaml")))
def test_the_examples_are_without_problems(name: str) -> None:
    assert load_topology(EXAMPLES / f"{name}.yaml").federation == name


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        ("  a: {parrent: b}\n  b: {}\n", "4:7", "unknown key `parrent`; did you mean `parent`?"),
        ("  a: {bytes: {chache: 1GiB}}\n", "4:15", "unknown key `chache`; did you mean `cache`?"),
        ("  a: {bytes: {cache: 1G}}\n", "4:22", "cache: `1G` is not a size: write 1GiB"),
        ("  a: {bytes: {rate: 1kB}}\n", "4:21", "rate: at least 1048576 bytes"),
        ("  a: {bytes: {daily: 0B}}\n", "4:22", "daily: at least 1 bytes"),
        ("  a: {bytes: {outputs: 0B}}\n", "4:24", "outputs: at least 1 bytes"),
        ("  a: {bytes: {streams: 0}}\n", "4:24", "streams: a number from 1 to 256, not `0`"),
        ("  a: {external: true, bytes: {}}\n", "4:23", "an external system has its `bytes` in its own site's file"),
        ("  a: {parent: blay}\n  blays: {}\n", "4:15", "there is no system `blay`; did you mean `blays`?"),
        ("  a: {parent: a}\n", "4:15", "`a` cannot be its own parent"),
        ("  a: {}\n  b: {}\n  c: {parents: [a, b]}\n", "6:3", "`c` has 2 parents: add `primary: ` and one of a, b"),
        ("  a: {}\n  b: {parent: a, primary: c}\n", "5:27", "the primary parent `c` is not among the parents (a)"),
        ("  a: {}\n  b: {parents: [a, a]}\n", "5:20", "`a` is listed twice"),
        (
            "  a: {parent: b}\n  b: {parent: c}\n  c: {parent: a}\n",
            "4:3",
            "a system cannot be above itself: a -> b -> c -> a",
        ),
        ("  Abc: {}\n", "4:3", "system `Abc`: a name is small letters"),
        ("  --out: {}\n", "4:3", "system `--out`: a name does not begin with `-`, or commands"),
        ("  a.17: {}\n", "4:3", "system `a.17`: the last part of a name is not all digits"),
        ("  a.sock: {}\n", "4:3", "system `a.sock`: this name is used"),
        ("  a:\n", "4:3", "system `a` needs a mapping"),
        ("  a: {reach: far}\n", "4:14", "unknown reach `far`: open, proxy, outbound"),
        ("  a: {host: h}\n", "4:7", "`host` needs `port` beside it"),
        ("  a: {port: 7101}\n", "4:7", "`port` needs `host` beside it"),
        ("  a: {host: a b, port: 1}\n", "4:13", "`a b` is not a host name or address"),
        ("  a: {host: '[::1]', port: 1}\n", "4:13", "`[::1]` is not a host name or address; an IPv6 address stands"),
        ("  a: {host: .., port: 1}\n", "4:13", "`..` is not a host name or address"),
        ("  a: {host: ., port: 1}\n", "4:13", "`.` is not a host name or address"),
        ("  a: {host: h/x, port: 1}\n", "4:13", "`h/x` is not a host name or address"),
        ("  a: {host: a..b, port: 1}\n", "4:13", "`a..b` is not a host name or address"),
        ("  a: {host: --x, port: 1}\n", "4:13", "`--x` is not a host name or address"),
        ("  a: {host: 'h`x`', port: 1}\n", "4:13", "`h`x`` is not a host name or address"),
        ("  a: {host: 'fe80::1%..', port: 1}\n", "4:13", "`fe80::1%..` is not a host name or address"),
        ("  a: {host: h, port: 70000}\n", "4:22", "`70000` is not a port: 1 to 65535"),
        ("  a: {host: h, port: 1}\n  b: {host: H, port: 1}\n", "5:22", "H:1 is the address of `a` already"),
        (
            "  a: {host: h, port: 1, bulk_port: 2}\n  b: {host: H, port: 2}\n",
            "5:22",
            "H:2 is the address of `a` already",
        ),
        ("  a: {host: h, port: 1, bulk_port: 1}\n", "4:22", "h:1 is the address of `a` already"),
        ("  a: {bulk_port: 1}\n", "4:7", "`bulk_port` needs `host` and `port` beside it"),
        ("  a: {host: h, port: 1, bulk_port: 70000}\n", "4:36", "`70000` is not a port: 1 to 65535"),
        ("  a: {machine: {probe: magic}}\n", "4:24", "unknown probe `magic`: proc or fixed"),
        ("  a: {machine: {load: 0%}}\n", "4:17", "`load` is measured; it can be set with `probe: fixed` only"),
        ("  a: {machine: {probe: fixed, avail_mem: 8G}}\n", "4:42", "avail_mem: `8G` is not a size: write 8GiB"),
        (
            "  a: {machine: {probe: fixed, avail_mem: 8}}\n",
            "4:42",
            "avail_mem: `8` is not a size: it needs a unit, as in 8B",
        ),
        ("  a: {machine: {slots: two}}\n", "4:24", "slots: `two` is not an integer"),
        ("  a: {machine: {slots: true}}\n", "4:24", "slots: `True` is not an integer"),
        ("  a: {machine: {attributes: {gpu: 1.5}}}\n", "4:35", "gpu: `1.5` is neither a text nor an integer"),
        ("  a: {machine: {attributes: {os: x}}}\n", "4:30", "os: is an attribute of every machine"),
        ("  a: {machine: {attributes: {keyboard_idle: 3}}}\n", "4:30", "keyboard_idle: is an attribute of every"),
        ("  a: {machine: {keyboard_idle: 3s}}\n", "4:17", "`keyboard_idle` is measured"),
        ("  a: {machine: {console: used}}\n", "4:26", "console: `used` is not an absolute path"),
        ("  a: {parent: [b]}\n  b: {}\n", "4:7", "`parent` takes one name"),
        ("  a: {}\n  a: {}\n", "5:3", "found duplicate key"),
        ("  a: &m\n    b: {<<: *m}\n", "5:13", "`*m` stands in a value that has a name (`&NAME`) itself"),
        ("  a: &m {}\n  b: &n {x: *m}\n  c: *n\n", "5:13", "`*m` stands in a value that has a name"),
        ("  {}\n", "4:3", "`systems:` names no system"),
    ],
)
def test_a_mistake_is_reported_with_its_position(body: str, place: str, text: str) -> None:
    assert [problem for problem in problems_of(HEAD + body) if problem.startswith(f"t.yaml:{place}: {text}")]


@pytest.mark.parametrize("host", ["h", "a.b-c.example.", "my_host", "10.0.0.1", "fe80::1%eth0", "::"])
def test_names_and_addresses_of_hosts_are_taken(host: str) -> None:
    assert read_topology(f"{HEAD}  a: {{host: '{host}', port: 1}}\n", "t").system("a").host == host


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    found = problems_of("version: 2\nfederation: F\nsystems:\n  a: {parent: x, reach: far}\n")
    assert [problem.split(": ")[0] for problem in found] == ["t.yaml:1:10", "t.yaml:2:13", "t.yaml:4:15", "t.yaml:4:25"]


@pytest.mark.parametrize(
    "text", ["", "- a\n", "a: [1\n", "\ta: 1\n", "a: *nowhere\n", "systems: 3\n", "a: " + "[" * 3000, "{a: " * 3000]
)
def test_any_other_text_is_a_topology_error(text: str) -> None:
    assert problems_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a:\n\tb: 1\n",
            "2:1: this is not YAML: found character '\\t' that cannot start any token; indent with spaces",
        ),
        ("a: {{b: {c: d}}}\n", "1:1: this is not YAML: a key is a mapping or a list; look for `{{` or `{[`"),
        ("a: b: c\n", "1:5: this is not YAML: mapping values are not allowed here; indent this line like"),
        (
            "a: @b\n",
            "1:4: this is not YAML: found character '@' that cannot start any token; put the value into quotes",
        ),
        ("a: {b: [}\n", "1:9: this is not YAML: expected the node content, but found '}'; look for a bracket"),
        (
            '\na: "b\n',
            "3:1: this is not YAML: found unexpected end of stream while scanning a quoted scalar from line 2; ",
        ),
        ("[" * 20_000, "1:34: lists and mappings are nested more than 32 deep"),
        ("[" * 20_000 + "*a", "1:34: lists and mappings are nested more than 32 deep"),
        ("a: " + "{a: " * 20_000, "1:133: lists and mappings are nested more than 32 deep"),
        ("- " * 20_000, "1:65: lists and mappings are nested more than 32 deep"),
        ("version: 0x" + "f" * 5_000, "1:10: a number has at most 100 characters: put a text into quotes"),
        ("version: " + "9" * 5_000, "1:10: a number has at most 100 characters: put a text into quotes"),
        ("\0", "1:1: this is not YAML: unacceptable character #x0000: special characters are not allowed"),
    ],
)
def test_invalid_yaml_is_reported_on_one_line_with_a_remedy(text: str, expected: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(f"t.yaml:{expected}")
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file or directory; is the path right?"),
        (b"# f\xfcr alle\n", "it is not UTF-8; save it with that encoding"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_full_path_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("here.yaml").write_bytes(content)
    with pytest.raises(MessiahsError) as caught:
        load_topology(Path("here.yaml"))
    assert str(caught.value) == f"the topology {tmp_path / 'here.yaml'} cannot be read: {expected}"


def test_siblings_share_the_primary_parent_and_may_be_parents_too() -> None:
    topology = read("  r: {}\n  o: {parent: r}\n  p: {parent: r}\n  c: {parents: [r, p], primary: r}\n")
    assert neighbors_of(topology, "c") == (
        Neighbor(system=topology.system("o").name, is_sibling=True),
        Neighbor(system=topology.system("p").name, is_sibling=True, is_parent=True),
        Neighbor(system=topology.system("r").name, is_parent=True, is_primary_parent=True),
    )


def test_a_child_by_another_parent_is_a_child_but_no_primary_child() -> None:
    topology = read("  x: {}\n  y: {}\n  n: {parents: [x, y], primary: x}\n")
    assert neighbors_of(topology, "y") == (Neighbor(system=topology.system("n").name, is_child=True),)


@pytest.mark.parametrize(("siblings", "circles"), [(17, [17]), (18, [9, 9]), (52, [13, 13, 13, 13])])
def test_many_siblings_are_linked_in_circles_of_at_most_seventeen(siblings: int, circles: list[int]) -> None:
    topology = read("  r: {}\n" + "".join(f"  s{number:02}: {{parent: r}}\n" for number in range(siblings)))
    linked = {
        frozenset(other.system for other in neighbors_of(topology, system.name) if other.is_sibling) | {system.name}
        for system in topology.systems
        if system.name != "r"
    }
    assert sorted(map(len, linked)) == circles
    assert sum(circles) == siblings
    assert max(circles) <= SIBLINGS + 1


@pytest.mark.parametrize(("linked", "circles"), [(0, []), (1, [2, 2]), (2, [2, 2]), (3, [4])])
def test_the_number_of_linked_siblings_is_a_setting(linked: int, circles: list[int]) -> None:
    systems = "  r: {}\n" + "".join(f"  s{number}: {{parent: r}}\n" for number in range(4))
    topology = replace(read(systems), siblings=linked)
    found = {
        frozenset({system.name, *siblings})
        for system in topology.systems
        if (siblings := [other.system for other in neighbors_of(topology, system.name) if other.is_sibling])
    }
    assert sorted(map(len, found)) == circles
    text = f"version: 1\nfederation: f\ndefaults: {{siblings: {linked}}}\nsystems: {{a: {{}}}}\n"
    assert read_topology(text, "t").siblings == linked


@pytest.mark.parametrize("wrong", ["-1", "257", "true", "many", "1.5"])
def test_a_number_of_linked_siblings_out_of_range_is_a_problem(wrong: str) -> None:
    text = f"version: 1\nfederation: f\ndefaults: {{siblings: {wrong}}}\nsystems: {{a: {{}}}}\n"
    with pytest.raises(TopologyError, match="t:3:22: siblings: from 0 to 256"):
        read_topology(text, "t")


def test_the_neighborhoods_of_all_systems_are_those_of_each() -> None:
    topology = load_topology(EXAMPLES / "campus.yaml")
    all_of_them = Neighborhoods(topology)
    for system in topology.systems:
        assert all_of_them.of(system.name) == neighbors_of(topology, system.name)
        for other in all_of_them.of(system.name):
            assert system.name in [back.system for back in all_of_them.of(other.system)]


def test_the_settings_of_a_module_can_be_saved_and_read_again(tmp_path: Path) -> None:
    topology = load_topology(EXAMPLES / "trio.yaml")
    addresses = {str(system.name): f"127.0.0.1:{port}" for port, system in enumerate(topology.systems, start=9000)}
    settings = module_settings(topology, "leaf", addresses=addresses, state_directory=tmp_path, tls=TLS)
    save_settings(settings, tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json") == settings
    assert [link.address for link in settings.neighbors] == ["127.0.0.1:9001"]


@pytest.mark.parametrize("damaged", [b"", b'{"federation": 1}', b'{"federation": "\xff"}'])
def test_damaged_settings_are_reported_with_their_file(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "settings.json").write_bytes(damaged)
    with pytest.raises(MessiahsError, match=r"settings\.json: the module's settings cannot be read: "):
        load_settings(tmp_path / "settings.json")


@pytest.mark.parametrize(("address", "expected"), [("h:1", 2), ("127.0.0.1:9000", 0)])
def test_a_port_for_large_files_belongs_to_the_host_of_the_topology(
    tmp_path: Path, address: str, expected: int
) -> None:
    topology = read("  a: {host: h, port: 1, bulk_port: 2}\n")
    settings = module_settings(topology, "a", addresses={"a": address}, state_directory=tmp_path, tls=TLS)
    assert settings.bulk_port == expected


def test_settings_need_the_address_of_every_module_that_is_dialed(tmp_path: Path) -> None:
    topology = load_topology(EXAMPLES / "pair.yaml")
    with pytest.raises(MessiahsError, match="no `host` and `port` for left"):
        module_settings(topology, "right", addresses={"right": "h:1"}, state_directory=tmp_path, tls=TLS)


def test_a_topology_of_too_many_systems_is_read_no_further() -> None:
    (line,) = problems_of(HEAD + "".join(f"  s{number}: {{}}\n" for number in range(10_001)) + "]")
    assert "a topology has at most 10000 systems" in line


def test_of_a_long_cycle_of_systems_its_ends_are_shown() -> None:
    systems = "".join(f"  s{number}: {{parent: s{(number + 1) % 50}}}\n" for number in range(50))
    line = next(line for line in problems_of(HEAD + systems) if "above itself" in line)
    assert "s0 -> s1 -> s2 -> s3 -> … (44 more) -> s48 -> s49 -> s0 (each is" in line
