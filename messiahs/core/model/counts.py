"""Numbers with their nouns, as people read them."""


def counted(count: int, what: str, /) -> str:
    """Return a number with a noun, which is the first word of `what`."""
    noun, _, rest = what.partition(" ")
    return f"{count} {noun}{'' if count == 1 else 's'}{f' {rest}' if rest else ''}"


def left_text(*, attempts: int, granted: int, passed: int) -> str:
    """Return what a drain still waits for: attempts here, and claims that were granted to others and passed on."""
    parts = ((attempts, "attempt"), (granted, "claim granted"), (passed, "claim passed on"))
    text = ", ".join(counted(count, what) for count, what in parts if count)
    return f"{text} left" if text else "it is empty"
