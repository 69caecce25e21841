"""Histories in real daemons: kept of what arrives over the wire, sent along, and read by policies (MESSIAHS 5.1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = f"""version: 1
federation: past
defaults: {{policy: leaf.policy, update_period: 1s}}
systems:
  top:  {{policy: top.policy}}
  busy: {{parent: top, machine: {fixed_machine(slots=2, load="60%")}}}
  calm: {{parent: top, machine: {fixed_machine(slots=2, load="10%")}}}
"""
LEAF = """policy "leaf";
history { keep $load over 1min; }
advertise every 1s { send $load_mean, $load_sd; }
accept from parent { limit 9 tasks; }
"""
TOP = """policy "top";
history { keep $load over 1min; }
accept from any { limit 9 tasks; }
rank candidates by first where $cand.load_count >= 2 and $cand.load_mean < 50%, least $cand.load_mean;
"""


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Federation]:
    for name, text in (("past.yaml", TOPOLOGY), ("leaf.policy", LEAF), ("top.policy", TOP)):
        (tmp_path / name).write_text(text)
    made = Federation(topology=tmp_path / "past.yaml", name="past", state=tmp_path / "state", module="top")
    with brought_up(made):
        yield made


def _view(federation: Federation, system: str) -> dict[str, Any]:
    seen: dict[str, Any] = federation.vectors()["views"][system]
    return seen


def _count(federation: Federation, system: str) -> int:
    return int(_view(federation, system)["history"].get("load_count", 0))


def test_a_module_knows_what_its_neighbors_were_ranks_them_by_it_and_begins_anew_after_a_restart(
    past: Federation,
) -> None:
    eventually(lambda: min(_count(past, "busy"), _count(past, "calm")) >= 8)
    busy, calm = _view(past, "busy")["history"], _view(past, "calm")["history"]
    assert calm["load_mean"] < 2_000 < busy["load_mean"]
    assert (busy["load_sd"], calm["load_sd"]) == (0, 0)
    assert calm["load_permanence"] >= 1
    # Their own histories come with the data, too.
    eventually(lambda: "load_mean" in _view(past, "busy")["classes"][0]["attributes"])
    low, high = _view(past, "busy")["classes"][0]["attributes"]["load_mean"]
    assert low <= 6_000 <= high
    task = past.submit("--", "true")
    assert past.run("wait", task).returncode == 0
    assert past.status(task)["executed_on"] == "calm"
    before, pid = _count(past, "calm"), past.pid("top", "daemon")
    past.kill("top", "daemon")
    eventually(lambda: past.pid("top", "daemon") != pid)
    eventually(lambda: "calm" in past.vectors()["views"])
    assert _count(past, "calm") < before


def test_a_trace_with_histories_is_replayed(past: Federation) -> None:
    eventually(lambda: _count(past, "calm") >= 3)
    assert past.run("trace", "start", "--all").returncode == 0
    assert past.run("run", "--", "echo", "done").stdout == "done\n"
    assert past.run("trace", "stop", "--all").returncode == 0
    replayed = past.run("trace", "replay", "--json")
    assert (replayed.returncode, json.loads(replayed.stdout)["differences"]) == (0, []), replayed.stderr
