"""Attributes that an owner's policy can read besides those of descriptions."""

import re

from messiahs.core.model.attributes import CATALOGUE, SEEN_BY_THE_OWNER, Kind, Unit
from messiahs.language.compiler.accept import ACCEPT
from messiahs.language.compiler.ranks import RANK
from messiahs.language.compiler.vocabulary import LET, Vocabulary

VOCABULARY = Vocabulary()


def test_no_name_has_two_meanings_in_a_scope() -> None:
    described = {each.name for each in CATALOGUE}
    assert not {each.name for each in SEEN_BY_THE_OWNER if each.scope.value in {"here", "present task"}} & described
    assert len({(each.scope, each.name) for each in SEEN_BY_THE_OWNER}) == len(SEEN_BY_THE_OWNER)


def test_every_attribute_can_be_named_and_has_a_meaning() -> None:
    assert [each.name for each in SEEN_BY_THE_OWNER if not re.fullmatch(r"[a-z][a-z_]*", each.name)] == []
    assert [each.name for each in SEEN_BY_THE_OWNER if not each.meaning] == []
    assert [each.name for each in SEEN_BY_THE_OWNER if each.kind is Kind.STRING and each.unit is not Unit.NONE] == []


def test_every_scope_has_its_names() -> None:
    expected = {
        "task": {"mem", "origin", "from", "checkpointable"},
        "here": {"load", "keyboard_idle", "waiting_above"},
        "cand": {"name", "relation", "age", "count"},
        "peer": {"name", "relation", "balance"},
        "now": {"clock", "weekday", "day", "month", "date"},
        "machine": {"load", "speed"},
    }
    assert all(names <= VOCABULARY.names_in(scope).keys() for scope, names in expected.items())


def test_the_subject_of_a_block_is_one_of_its_scopes() -> None:
    assert all(VOCABULARY.names_in(view.subject) for view in (ACCEPT, RANK) if view.subject is not None)
    assert all(VOCABULARY.names_in(scope) for scope in LET.scopes)
