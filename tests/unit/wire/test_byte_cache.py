"""A cache that is bounded by bytes keeps many small entries or few large ones."""

import pytest

from messiahs.wire.byte_cache import cached_by_bytes


def test_many_small_answers_are_kept_and_the_one_not_asked_for_longest_goes_first() -> None:
    asked: list[int] = []

    def double(number: int) -> int:
        asked.append(number)
        return 2 * number

    cached = cached_by_bytes(double, limit_bytes=1_000, size=lambda number, _: 100 if number < 100 else 901)
    assert [cached(number) for number in range(10)] == [2 * number for number in range(10)]
    assert [cached(number) for number in range(10)] == [2 * number for number in range(10)]
    assert asked == list(range(10))
    cached(0)
    cached(10)
    cached(0)
    assert asked == list(range(11))
    cached(1)
    assert asked == [*range(11), 1]
    cached(100)
    cached(0)
    assert asked[-2:] == [100, 0]


def test_an_error_is_not_remembered() -> None:
    asked: list[int] = []

    def refuse(number: int) -> int:
        asked.append(number)
        raise ValueError(number)

    cached = cached_by_bytes(refuse, limit_bytes=1_000, size=lambda _, __: 1)
    for _ in range(2):
        with pytest.raises(ValueError, match="7"):
            cached(7)
    assert asked == [7, 7]
