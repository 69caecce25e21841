"""Inputs of tasks of other systems that are not needed any more."""

from messiahs.daemon.transfer.named_inputs import NamedInputs


def test_what_tasks_named_is_spent_after_a_while_unless_it_is_named_again() -> None:
    now = 1_000.0
    named = NamedInputs(lambda: now)
    named.note([b"a", b"b"])
    assert named.spent() == {}
    now = 1_011.0
    named.note([b"b"])
    assert named.spent() == {b"a": 1_000.0}


def test_what_was_named_minutes_ago_is_forgotten() -> None:
    now = 1_000.0
    named = NamedInputs(lambda: now)
    named.note([b"a"])
    now = 1_301.0
    named.note([b"b"])
    now = 1_350.0
    assert named.spent() == {b"b": 1_301.0}


def test_of_very_many_the_oldest_are_forgotten() -> None:
    now = 1_000.0
    named = NamedInputs(lambda: now)
    named.note(number.to_bytes(4) for number in range(70_000))
    now = 1_020.0
    assert named.spent().keys() == {number.to_bytes(4) for number in range(70_000 - 65_536, 70_000)}
