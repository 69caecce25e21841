"""`messiahs topology diff`: what changes for whom."""

import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.cli.main import main

_OLD = """
  uni:   {host: uni.example, port: 7301}
  cs:    {host: cs.example, port: 7301, parent: uni, policy: a.policy}
  phys:  {host: phys.example, port: 7301, parent: uni}
  desk:  {host: desk.example, port: 7301, parent: cs, machine: {slots: 2}}
  old:   {reach: outbound, parent: phys}
"""


class Pair:
    """Two topology files in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("old", "new"):
            (folder / name).mkdir()
            (folder / name / "a.policy").write_text('policy "a" version 1;\naccept from any {}\n')

    def write(self, name: str, systems: str, *, federation: str = "pact", defaults: str = "{}") -> None:
        """Write one of the topologies."""
        text = f"version: 1\nfederation: {federation}\ndefaults: {defaults}\nsystems:\n{systems}"
        (self.folder / name / "t.yaml").write_text(text)

    def diff(self, *words: str) -> int:
        """Compare them, and return the exit code."""
        return main(["topology", "diff", *(str(self.folder / name / "t.yaml") for name in ("old", "new")), *words])


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Write the same topology twice."""
    made = Pair(tmp_path)
    made.write("old", _OLD)
    made.write("new", _OLD)
    return made


def _changed(pair: Pair, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert pair.diff("--json") == 1
    return dict(json.loads(capsys.readouterr().out)["changed"])


def test_equal_topologies_in_different_folders_do_not_differ(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert pair.diff() == 0
    assert capsys.readouterr().out == ""


def test_new_and_lost_systems_change_their_neighbors(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.write("new", _OLD.replace("  old:   {reach: outbound, parent: phys}", "  lab: {reach: outbound, parent: cs}"))
    assert pair.diff() == 1
    assert capsys.readouterr().out.splitlines() == [
        "lab: new",
        "old: gone",
        "cs:",
        "  gains lab (primary child)",
        "phys:",
        "  loses old (primary child)",
        "desk:",
        "  gains lab (sibling)",
    ]


def test_another_primary_parent_changes_both_parents_and_the_circles(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    both = "parents: [cs, phys], primary: {}, machine"
    pair.write("old", _OLD.replace("parent: cs, machine", both.format("cs")))
    pair.write("new", _OLD.replace("parent: cs, machine", both.format("phys")))
    changed = _changed(pair, capsys)
    assert {
        "subject": "relation",
        "neighbor": "cs",
        "old": "primary parent",
        "new": "parent",
        "needs_restart": False,
    } in changed["desk"]
    assert [(each["subject"], each["old"], each["new"]) for each in changed["cs"]] == [
        ("relation", "primary child", "child")
    ]
    assert ("neighbor", "desk", None, "sibling") in [
        (each["subject"], each["neighbor"], each["old"], each["new"]) for each in changed["old"]
    ]


def test_a_moved_system_changes_those_that_dial_it_and_waits_for_its_restart(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    pair.write("new", _OLD.replace("cs.example, port: 7301", "cs.example, port: 7400"))
    changed = _changed(pair, capsys)
    assert [(each["subject"], each["new"], each["needs_restart"]) for each in changed["cs"]] == [
        ("listen", "cs.example:7400", True)
    ]
    assert [(each["neighbor"], each["subject"], each["new"]) for each in changed["desk"]] == [
        ("cs", "address", "cs.example:7400")
    ]
    assert "uni" not in changed


def test_a_policy_with_another_content_differs_and_one_that_moved_does_not(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair.folder / "new" / "a.policy").write_text('policy "b" version 1;\naccept from any {}\n')
    changed = _changed(pair, capsys)
    assert [(name, each["subject"]) for name, changes in changed.items() for each in changes] == [("cs", "policy")]
    assert not changed["cs"][0]["needs_restart"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("slots: 2", "slots: 3", "  machine: proc; slots=2 -> proc; slots=3 (restart)"),
        (
            "machine: {slots: 2}",
            "bytes: {cache: 9GiB, streams: 3, rate: 5MiB, daily: 1TiB, outputs: 4GiB}",
            (
                "  bytes: cache 10 GiB, 64 streams -> "
                "cache 9 GiB, 3 streams, 5 MiB in a second, 1 TiB in a day, outputs 4 GiB (restart)"
            ),
        ),
        (
            "machine: {slots: 2}",
            'keep_alive: 20s, http_proxy: "http://ann:secret@proxy.example:3128"',
            "  connections: keep_alive 10s -> keep_alive 20s, proxy proxy.example:3128 (restart)",
        ),
        ("desk.example, port: 7301", "desk.example, port: 7301, bulk_port: 7302", "  bulk_port: any -> 7302 (restart)"),
        (
            "{host: uni.example, port: 7301}",
            "{host: uni.example, port: 7301, reach: proxy}",
            "  border: no -> yes (restart)",
        ),
    ],
)
def test_what_a_running_module_cannot_take_over_is_marked(
    pair: Pair, capsys: pytest.CaptureFixture[str], old: str, new: str, line: str
) -> None:
    assert old in _OLD
    pair.write("new", _OLD.replace(old, new))
    assert pair.diff() == 1
    assert line in capsys.readouterr().out


def test_another_password_for_a_proxy_is_a_difference_and_is_not_shown(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = "machine: {slots: 2}"
    for name, password in (("old", "secret"), ("new", "hidden")):
        through = f'{desk}, http_proxy: "http://ann:{password}@proxy.example:3128"'
        pair.write(name, _OLD.replace(desk, through))
    (found,) = _changed(pair, capsys)["desk"]
    before = "keep_alive 10s, proxy proxy.example:3128"
    assert (found["old"], found["new"]) == (before, f"{before} with another user or password")


def test_another_period_changes_every_system(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.write("new", _OLD, defaults="{update_period: 3s}")
    assert pair.diff() == 1
    assert capsys.readouterr().out.count("  update_period: 2s -> 3s\n") == 5


def test_another_federation_is_a_difference(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.write("new", _OLD, federation="treaty")
    assert pair.diff() == 1
    assert capsys.readouterr().out == "another federation: pact -> treaty\n"


def test_an_invalid_file_is_neither_equal_nor_different(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.write("new", "  uni: {parent: nobody}\n")
    assert pair.diff() == 2
    assert "nobody" in capsys.readouterr().err


def test_another_bound_of_siblings_changes_all_modules_at_their_next_start(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    pair.write("new", _OLD, defaults="{siblings: 2}")
    changed = _changed(pair, capsys)
    assert set(changed) == {"uni", "cs", "phys", "desk", "old"}
    for each in changed.values():
        (found,) = (one for one in each if one["subject"] == "siblings")
        assert (found["old"], found["new"], found["needs_restart"]) == ("16", "2", True)
