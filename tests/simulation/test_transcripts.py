"""Conversations of several modules, replayed and compared with those committed under transcripts/.

A transcript that differs is either a defect or a change to be read and committed: `MESSIAHS_WRITE_TRANSCRIPTS=1 pytest
tests/simulation/test_transcripts.py` writes them again.
"""

import os
from pathlib import Path

import pytest

from tests.simulation.scenarios import SCENARIOS, transcript

FOLDER = Path(__file__).with_name("transcripts")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_conversations_match_the_committed_transcripts(name: str) -> None:
    path = FOLDER / f"{name}.txt"
    said = transcript(SCENARIOS[name])
    if os.environ.get("MESSIAHS_WRITE_TRANSCRIPTS"):
        path.write_text(said)
    assert said == path.read_text()


def test_every_committed_transcript_is_replayed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(SCENARIOS)
