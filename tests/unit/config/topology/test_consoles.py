"""Warnings for machines whose use is known from terminals only."""

from pathlib import Path

import pytest

from messiahs.config.topology.consoles import warnings_of_consoles
from messiahs.config.topology.reading import load_topology

ASKS = """let away = $here.keyboard_idle >= 15min;
running { suspend unless away; resume when $here.keyboard_idle >= 1h; }
"""
PLACE = "desk.policy:1:12: warning[P413]:"
ROOT = Path(__file__).parents[4]


def _warnings(folder: Path, policy: str, *machines: str) -> list[str]:
    (folder / "desk.policy").write_text(policy)
    file = folder / "t.yaml"
    systems = "".join(f"  m{place}: {{parent: top, {machine}}}\n" for place, machine in enumerate(machines))
    file.write_text(f"version: 1\nfederation: f\ndefaults: {{policy: desk.policy}}\nsystems:\n  top: {{}}\n{systems}")
    return [each.splitlines()[0].removeprefix(f"{folder}/") for each in warnings_of_consoles(load_topology(file))]


def test_a_machine_without_a_console_is_named_once_for_each_policy(tmp_path: Path) -> None:
    problem = "names no console: only input at terminals counts there"
    assert _warnings(tmp_path, ASKS, "machine: {}") == [f"{PLACE} m0 {problem}"]
    named = "machine: {console: /run/used}"
    assert _warnings(tmp_path, ASKS, named, "machine: {}", "machine: {slots: 2}") == [
        f"{PLACE} m1 (and 1 more) {problem}"
    ]


@pytest.mark.parametrize(
    "machine", ["machine: {console: /run/used}", "machine: {probe: fixed, keyboard_idle: 10min}", "reach: open"]
)
def test_a_console_a_fixed_idle_time_and_no_machine_have_no_warning(tmp_path: Path, machine: str) -> None:
    assert _warnings(tmp_path, ASKS, machine) == []


def test_a_policy_that_does_not_read_it_has_no_warning(tmp_path: Path) -> None:
    asks_not = "# $here.keyboard_idle\nrunning { suspend when $here.load > 80%; resume when $here.load < 50%; }\n"
    assert _warnings(tmp_path, asks_not, "machine: {}") == []


@pytest.mark.parametrize("file", sorted((ROOT / "topologies").glob("*.yaml")), ids=lambda file: file.name)
def test_the_topologies_that_come_along_have_none(file: Path) -> None:
    assert warnings_of_consoles(load_topology(file)) == ()
