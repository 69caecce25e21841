"""Orders drawn by weight: greater weights tend to come earlier, and every position comes once."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from messiahs.policy.weighted_order import weighted_order


@dataclass(slots=True)
class Drawn:
    """Returns the same numbers for the same seed."""

    seed: int
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def bits(self, count: int, /) -> int:
        """Return so many random bits."""
        return self.random.getrandbits(count)


def _one_after_the_other(weights: list[int], randomness: Drawn) -> list[int]:
    """Search the remaining weights for the drawn point, and remove that position."""
    left = list(enumerate(weights))
    order = []
    while len(left) > 1:
        point = randomness.bits(64) % sum(weight for _, weight in left)
        index = 0
        while point >= left[index][1]:
            point -= left[index][1]
            index += 1
        order.append(left.pop(index)[0])
    return order + [place for place, _ in left]


@given(st.lists(st.integers(1, 2**70) | st.integers(1, 4), max_size=40), st.integers(0, 9))
def test_an_order_equals_that_of_a_linear_search(weights: list[int], seed: int) -> None:
    assert weighted_order(weights, Drawn(seed), drawn=40) == _one_after_the_other(weights, Drawn(seed))


def test_a_ninefold_weight_comes_first_nine_times_of_ten() -> None:
    randomness = Drawn(1)
    firsts = [weighted_order([1, 9], randomness, drawn=2)[0] for _ in range(1000)]
    assert 850 < firsts.count(1) < 950


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(0, 20), st.integers(0, 9))
def test_positions_that_are_not_drawn_follow_in_their_order(weights: list[int], drawn: int, seed: int) -> None:
    first = _one_after_the_other(weights, Drawn(seed))[:drawn]
    left = [place for place in range(len(weights)) if place not in first]
    assert weighted_order(weights, Drawn(seed), drawn=drawn) == first + left
