"""Numbers with units."""

import pytest

from messiahs.config.quantities import duration_ns, duration_seconds, share, size_bytes
from messiahs.errors import MessiahsError


@pytest.mark.parametrize(
    ("text", "bytes_"), [("10B", 10), ("500MB", 500_000_000), ("8GiB", 8 * 2**30), ("1.5kB", 1500), ("2KiB", 2048)]
)
def test_a_size_is_given_in_bytes(text: str, bytes_: int) -> None:
    assert size_bytes(text) == bytes_


@pytest.mark.parametrize(("text", "seconds"), [("15min", 900), ("2d", 172_800), ("90s", 90), ("1.5h", 5400)])
def test_a_duration_is_given_in_seconds(text: str, seconds: int) -> None:
    assert duration_seconds(text) == seconds


def test_zeros_in_front_of_a_number_mean_nothing() -> None:
    assert size_bytes("0" * 5000 + "1.5kB") == 1500


@pytest.mark.parametrize("text", ["9" * 5000 + "B", "9" * 20 + "B", "8192PiB", "9223372036854775808B"])
def test_a_size_beyond_64_bits_is_refused(text: str) -> None:
    assert size_bytes("9223372036854775807B") == 2**63 - 1
    with pytest.raises(MessiahsError, match="larger than can be stored"):
        size_bytes(text)


def test_durations_know_milliseconds_where_they_are_allowed() -> None:
    assert duration_ns("500ms") == 500_000_000
    assert duration_seconds("2000ms") == 2
    with pytest.raises(MessiahsError, match="`500ms` is not a whole number of seconds: write for example 90s, 15min"):
        duration_seconds("500ms")


@pytest.mark.parametrize(
    ("text", "hint"), [("5 parsecs", "write 90s, 15min or 2d"), ("0", "as in 0s or 0min or 0h"), ("?", "example 90s,")]
)
def test_where_seconds_are_meant_no_milliseconds_are_suggested(text: str, hint: str) -> None:
    with pytest.raises(MessiahsError) as caught:
        duration_seconds(text)
    assert hint in str(caught.value)
    assert "ms" not in str(caught.value)


def test_a_share_is_kept_in_hundredths_of_a_percent() -> None:
    assert share("12.5%") == 1250


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("4G", "write 4GiB (powers of 1024) or 4GB (powers of 1000)"),
        ("4g", "write 4GiB"),
        ("4gib", "write 4GiB"),
        ("100", "it needs a unit, as in 100B"),
        ("-1GiB", "write for example"),
        ("4 GB", "`4 GB` is not a size: write 4GB, without a space"),
        ("4 G", "write 4GiB"),
        ("1.5B", "finer"),
    ],
)
def test_a_wrong_size_is_answered_with_the_right_one(text: str, hint: str) -> None:
    with pytest.raises(MessiahsError) as caught:
        size_bytes(text)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("5m", "write 5min"), ("5", "5ms or 5s"), ("5 minutes", "write 5min"), ("5 h", "write 5h, without")],
)
def test_a_wrong_duration_is_answered_with_the_right_one(text: str, hint: str) -> None:
    with pytest.raises(MessiahsError) as caught:
        duration_ns(text)
    assert hint in str(caught.value)
