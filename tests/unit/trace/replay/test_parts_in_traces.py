"""Traces hold what parts remember, and name the parts from outside with distribution and version."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.installed_parts import PartSource
from messiahs.config.policies import PolicySource
from messiahs.core.interface.events import ControlReceived, LinkUp, PolicyChanged, VectorReceived
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import SECOND
from messiahs.errors import PolicyError, TraceError
from messiahs.trace.replay.comparison import compare
from messiahs.trace.replay.replay import replay
from tests.contract.part_example import install
from tests.unit.core.rig import CHILD, OTHER_CHILD, PARENT, Rig, hello, make_module, request, view
from tests.unit.trace.taping import Taping, taping

TURNS = "accept from any { limit 100 tasks; } rank candidates by round_robin();"
RESTING = "accept from any { limit 100 tasks; } rank candidates by resting(rest = 1h);"
SOURCE = (PartSource(name="resting", distribution="messiahs-resting", version="1.0"),)


def _source(text: str) -> PolicySource:
    return PolicySource(file="x.policy", text=text, timeouts=Timeouts())


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Install the example of the page."""
    install(tmp_path)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        yield patched
    sys.modules.pop("messiahs_resting", None)


def _taped(text: str, *, segment_bytes: int = 1 << 20) -> Taping:
    """Record a module that is asked for places again and again."""
    tape = taping(Rig(module=make_module(policy=_source(text).policy())))
    tape.source = _source(text)
    tape.record(segment_bytes=segment_bytes)
    tape.start()
    for each in (CHILD, OTHER_CHILD, PARENT):
        tape.handle(LinkUp(neighbor=each))
        tape.handle(ControlReceived(sender=each, message=hello(each)))
    for each in (CHILD, OTHER_CHILD):
        said = StatusVector(kind=VectorKind.FOR_PARENTS, vector=view(), period_ns=SECOND, age_ns=0)
        tape.handle(VectorReceived(sender=each, message=said))
    for number in range(1, 6):
        asked = request(number, search=SearchId(bytes([number] * 16)))
        tape.handle(ControlReceived(sender=PARENT, message=asked))
    return tape


def test_what_a_part_remembers_stands_in_every_segment() -> None:
    tape = _taped(TURNS, segment_bytes=1)
    assert tape.module.state.parts.states[PartKind.LOCATION] == ((CHILD,),)
    tape.module.end_recording()
    done = replay(tape.files.segments())
    assert done.segments > 1
    assert done.differences == []


def test_a_part_from_outside_is_replayed_and_compared(installed: pytest.MonkeyPatch) -> None:
    del installed
    tape = _taped(RESTING)
    tape.module.end_recording()
    (segment,) = tape.files.segments()
    assert segment.head.policy.parts == SOURCE
    assert replay([segment]).differences == []
    assert compare([segment], (_source(RESTING), _source(RESTING))).changes == ()
    changed = compare([segment], (_source(RESTING), _source(TURNS)))
    assert changed.asked


def test_a_replay_says_what_is_not_installed(installed: pytest.MonkeyPatch) -> None:
    tape = _taped(RESTING)
    tape.module.end_recording()
    segments = tape.files.segments()
    installed.undo()
    importlib.invalidate_caches()
    with pytest.raises(PolicyError, match=r"recorded with messiahs-resting 1\.0, which is not installed"):
        replay(segments)


def test_so_it_does_of_a_policy_that_was_loaded_later(installed: pytest.MonkeyPatch) -> None:
    tape = _taped(TURNS)
    tape.handle(PolicyChanged(policy=_source(RESTING).policy()))
    tape.module.end_recording()
    segments = tape.files.segments()
    assert replay(segments).differences == []
    installed.undo()
    importlib.invalidate_caches()
    with pytest.raises(TraceError, match=r"recorded with messiahs-resting 1\.0, which is not installed"):
        replay(segments)
