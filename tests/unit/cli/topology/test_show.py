"""`messiahs topology show`: who dials whom, and the ways of bytes, for people and programs."""

import json
from pathlib import Path

import pytest

from messiahs.cli.main import main

WIDTH = 80


def written(folder: Path, systems: str) -> str:
    file = folder / "t.yaml"
    file.write_text(f"version: 1\nfederation: pact\nsystems:\n{systems}")
    return str(file)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["topology", "show", *words]) == 0
    return capsys.readouterr().out


def test_links_and_ways_are_listed_below_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "  uni: {}\n  cs: {parent: uni}\n  laptop: {parent: cs, reach: outbound}\n")
    assert shown(capsys, file).splitlines()[-9:] == [
        "",
        "who dials whom:",
        "  cs -> uni (parent)",
        "  laptop -> cs (parent)",
        "",
        "bytes, from the origin of a task to its machine: straight, except",
        "  by cs (asks for a connection)",
        "    from uni",
        "    to   laptop",
    ]
    document = json.loads(shown(capsys, file, "--json"))
    assert {"dialer": "laptop", "dialed": "cs", "relation": "parent"} in document["links"]
    stops = [{"system": "cs", "why": "not dialable"}]
    assert {"from": ["uni"], "to": ["laptop"], "stops": stops, "without": None} in document["ways"]


def test_of_two_borders_side_by_side_both_ways_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "  other: {host: b, port: 7300, external: true, trust: theirs.pem}\n"
    borders = "".join(f"  {each}: {{host: {each}, port: 7300, parent: other, reach: proxy}}\n" for each in ("a", "z"))
    file = written(tmp_path, f"{other}{borders}  m: {{parents: [a, z], primary: a}}\n")
    lines = shown(capsys, file).splitlines()
    first, second = lines.index("  by a (border)"), lines.index("  or, without a, by z (border)")
    assert lines[first + 1 : first + 3] == lines[second + 1 : second + 3] == ["    from other m", "    to   m other"]


def test_thirty_systems_fit_into_eighty_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machines = (
        f"  host-{number}.department: {{parent: department, host: host-{number}.cs.example, port: 73{number:02}, "
        "machine: {slots: 4}}\n"
        for number in range(27)
    )
    gate = "  campus-gate: {host: gate.example, port: 7300, parent: other-university-gate, reach: proxy}\n"
    other = "  other-university-gate: {host: far.example, port: 7300, external: true, trust: theirs.pem}\n"
    file = written(tmp_path, f"{other}{gate}  department: {{parent: campus-gate}}\n{''.join(machines)}")
    lines = shown(capsys, file).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert sum("host-26.department" in line for line in lines) > 1
    assert "  by campus-gate (border)" in lines
