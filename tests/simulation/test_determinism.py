"""One seed gives one run, whatever the hash seed of the interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.swarm

ROOT = Path(__file__).parents[2]


def _simulate(hash_seed: str, topology: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "messiahs.cli.main", "sim", "run", str(ROOT / "topologies" / topology)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([*command, "--json", *options], env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("topology", ["pair.yaml", "trio.yaml", "campus.yaml"])
def test_two_hash_seeds_give_one_digest(topology: str) -> None:
    one, other = (_simulate(seed, topology, "--tasks", "300", "--seed", "7") for seed in ("1", "2"))
    assert one == other
    assert (one["finished"], sum(one["placements"].values())) == (300, 300)


def _swarm(hash_seed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "messiahs.cli.main", "sim", "swarm", "--runs", "2", "--seed", "11", "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_two_hash_seeds_cause_the_same_failures() -> None:
    one, other = _swarm("1"), _swarm("2")
    assert one == other
    assert (one["runs"], one["failures"], sorted(one["digests"])) == (2, [], ["11", "12"])


def test_another_seed_gives_another_run() -> None:
    one, other = (_simulate("0", "pair.yaml", "--tasks", "50", "--seed", seed) for seed in ("7", "8"))
    assert one["digest"] != other["digest"]


def test_a_simulated_task_is_placed_where_its_requirement_is_met() -> None:
    outcome = _simulate("0", "pair.yaml", "--tasks", "40", "--require", '$side eq "right"')
    assert outcome["placements"] == {"right": 40}
