"""The fuzz targets hold for every seed, and for findings of a short run of the fuzzer."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.__main__ import SEEDS, fuzz
from tests.fuzz.targets import TARGETS, fuzz_predicate
from tests.hostile.predicates import costly_texts, refused_bytes

SHORTLY_SECONDS = 5


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_keeps_the_guarantees(name: str) -> None:
    seeds = sorted((SEEDS / name).iterdir())
    assert seeds
    for seed in seeds:
        TARGETS[name](seed.read_bytes())


@pytest.mark.parametrize("name", [*refused_bytes(), *costly_texts()])
def test_hostile_predicates_keep_the_guarantees(name: str) -> None:
    costly = {each: text.encode() for each, text in costly_texts().items()}
    fuzz_predicate((refused_bytes() | costly)[name])


@pytest.mark.processes
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed: it is in the extra `dev` on Linux")
@pytest.mark.parametrize("name", TARGETS)
def test_a_short_search_finds_nothing(name: str, tmp_path: Path) -> None:
    kept = fuzz(name, seconds=SHORTLY_SECONDS, findings=tmp_path)
    assert kept, [(found.name, found.read_bytes()) for found in tmp_path.iterdir()]
