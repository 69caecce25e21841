"""Every part that policies may name keeps the contract: the built-in ones, and the example of docs/policy-parts.md."""

import copy
import importlib
from pathlib import Path
from random import Random

import pytest

from messiahs.config.installed_parts import catalogue
from messiahs.core.interface.parts import Failed, PartState
from messiahs.language.syntax.scanning import KEYWORDS
from messiahs.policy.built_in import BUILT_IN
from messiahs.policy.external_parts import SAFE, why_no_state
from messiahs.policy.parts import DeclaredPart
from tests.contract.part_example import install
from tests.contract.part_queries import QUERIES

NAMES = (*(f"{each.kind} by {each.name}" for each in BUILT_IN), "rank candidates by resting")


class Drawn:
    """Random bits that are the same in every run (mutable)."""

    def __init__(self) -> None:
        self._random = Random(7)

    def bits(self, count: int, /) -> int:
        """Draw."""
        return self._random.getrandbits(count)


@pytest.fixture(params=NAMES)
def part(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeclaredPart:
    """Return each part, as a policy finds it where the example is installed."""
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    kind, name = str(request.param).split(" by ")
    (found,) = (each for each in SAFE if each.value == kind)
    return catalogue().of_kind(found)[name]


def _asked(part: DeclaredPart) -> list[tuple[object, PartState]]:
    """Ask a new part every query twice, one after the other."""
    decider, draws = part.make(**{each.name: each.default for each in part.parameters}), Drawn()
    state, answers = decider.initial, []
    for query in QUERIES[part.kind] * 2:
        answer, state = decider.decide(query, state, draws)
        answers.append((answer, state))
    return answers


def test_its_answers_and_states_are_valid_also_for_empty_queries(part: DeclaredPart) -> None:
    answers = _asked(part)
    assert [each for each, _ in answers if isinstance(each, Failed)] == []
    wrong = [
        SAFE[part.kind].why_wrong(query, answer)
        for query, (answer, _) in zip(QUERIES[part.kind] * 2, answers, strict=True)
    ]
    assert wrong == [""] * len(answers)
    assert [why_no_state(state) for _, state in answers] == [""] * len(answers)


def test_the_same_queries_states_and_bits_give_the_same_answers(part: DeclaredPart) -> None:
    assert _asked(part) == _asked(part)


def test_it_changes_no_query(part: DeclaredPart) -> None:
    before = copy.deepcopy(QUERIES[part.kind])
    _asked(part)
    assert before == QUERIES[part.kind]


def test_it_has_no_memory_besides_its_state(part: DeclaredPart) -> None:
    values = {each.name: each.default for each in part.parameters}
    one, state, draws = part.make(**values), part.make(**values).initial, Drawn()
    for query in QUERIES[part.kind]:
        _, state = one.decide(query, state, draws)
    last = QUERIES[part.kind][-1]
    assert one.decide(last, state, Drawn()) == part.make(**values).decide(last, state, Drawn())


def test_its_declaration_can_be_written_in_a_policy(part: DeclaredPart) -> None:
    for name in (part.name, *(each.name for each in part.parameters)):
        assert name.isidentifier()
        assert name == name.lower()
        assert name not in KEYWORDS
    assert part.meaning
    assert all(each.meaning for each in part.parameters)
