"""The logarithmic scale: where buckets begin, and that they leave no gap."""

import pytest

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST
from messiahs.core.vectors.buckets import bucket_of, highest_in, lowest_in


def test_the_buckets_start_where_the_three_leading_bits_change() -> None:
    starts = [lowest_in(bucket) for bucket in range(21)]
    assert starts == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64]


@pytest.mark.parametrize("value", range(-7, 8))
def test_small_numbers_are_exact(value: int) -> None:
    bucket = bucket_of(value)
    assert (lowest_in(bucket), highest_in(bucket)) == (value, value)


def test_every_number_lies_in_its_bucket_and_buckets_leave_no_gap() -> None:
    for bucket in range(-240, 240):
        assert bucket_of(lowest_in(bucket)) == bucket
        assert bucket_of(highest_in(bucket)) == bucket
        assert lowest_in(bucket + 1) == highest_in(bucket) + 1


def test_a_bucket_is_at_most_a_quarter_of_its_start_wide() -> None:
    for bucket in range(1, 240):
        assert 4 * (highest_in(bucket) - lowest_in(bucket)) < lowest_in(bucket)


def test_negative_numbers_mirror_positive_ones() -> None:
    for bucket in range(1, 240):
        assert bucket_of(-lowest_in(bucket)) == -bucket
        assert (lowest_in(-bucket), highest_in(-bucket)) == (-highest_in(bucket), -lowest_in(bucket))


@pytest.mark.parametrize(("value", "bucket"), [(INTEGER_HIGHEST, 247), (INTEGER_LOWEST, -248)])
def test_the_ends_of_64_bit_integers_have_buckets(value: int, bucket: int) -> None:
    assert bucket_of(value) == bucket
    assert lowest_in(bucket) <= value <= highest_in(bucket)
