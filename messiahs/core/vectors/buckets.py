"""The static logarithmic scale on which vectors round numbers (MESSIAHS 5.1).

A bucket keeps the three leading bits of a number. They start at 0 to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40 and so on.
0 to 7 are exact, every other bucket is at most a quarter of its start wide, and negative numbers mirror positive ones.
"""

_EXACT = 8
_STEPS_PER_OCTAVE = 4


def bucket_of(value: int) -> int:
    """Return the index of the bucket that holds `value`; it grows with `value` and has its sign."""
    if value < 0:
        return -bucket_of(-value)
    if value < _EXACT:
        return value
    exponent = value.bit_length() - 1
    return _EXACT + (exponent - 3) * _STEPS_PER_OCTAVE + ((value >> (exponent - 2)) & 3)


def lowest_in(bucket: int) -> int:
    """Return the least number in a bucket."""
    return _start(bucket) if bucket >= 0 else -(_start(1 - bucket) - 1)


def highest_in(bucket: int) -> int:
    """Return the greatest number in a bucket."""
    return _start(bucket + 1) - 1 if bucket >= 0 else -_start(-bucket)


def _start(index: int) -> int:
    if index < _EXACT:
        return index
    octave, step = divmod(index - _EXACT, _STEPS_PER_OCTAVE)
    return (_STEPS_PER_OCTAVE + step) << (octave + 1)
