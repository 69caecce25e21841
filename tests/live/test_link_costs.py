"""Communication costs in real daemons: round trips of their vectors, and throughput of a large input (MESSIAHS 5.1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = f"""version: 1
federation: costs
defaults: {{policy: open.policy, update_period: 1s}}
systems:
  top:    {{}}
  middle: {{parent: top}}
  leaf:   {{parent: middle, machine: {fixed_machine(slots=2)}}}
"""
POLICY = """policy "open";
accept from any { limit 9 tasks; }
rank candidates by least $cand.round_trip default 1s, most $cand.throughput default 1MB;
"""


@pytest.fixture
def costs(tmp_path: Path) -> Iterator[Federation]:
    for name, text in (("costs.yaml", TOPOLOGY), ("open.policy", POLICY)):
        (tmp_path / name).write_text(text)
    made = Federation(topology=tmp_path / "costs.yaml", name="costs", state=tmp_path / "state", module="top")
    with brought_up(made):
        yield made


def _view(federation: Federation, module: str, neighbor: str) -> dict[str, Any]:
    seen: dict[str, Any] = federation.vectors(module)["views"][neighbor]
    return seen


def test_round_trips_and_the_throughput_of_a_large_input_are_measured_and_replayed(
    costs: Federation, tmp_path: Path
) -> None:
    eventually(lambda: _view(costs, "top", "middle")["round_trip_ns"] is not None)
    assert _view(costs, "top", "middle")["throughput"] is None
    assert costs.run("trace", "start", "--all").returncode == 0
    (tmp_path / "large").write_bytes(bytes(4 << 20))
    task = costs.submit("--input", str(tmp_path / "large"), "--", "wc", "-c", "large")
    assert costs.run("wait", task).returncode == 0
    # The input went straight to the leaf, which was found through the middle.
    eventually(lambda: _view(costs, "top", "middle")["throughput"] is not None)
    assert costs.run("trace", "stop", "--all").returncode == 0
    replayed = costs.run("trace", "replay", "--json")
    assert (replayed.returncode, json.loads(replayed.stdout)["differences"]) == (0, []), replayed.stderr
