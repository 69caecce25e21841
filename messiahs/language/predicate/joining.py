"""Adding to a predicate what the attributes of a task imply."""

from messiahs.errors import PredicateError


def joined(stated: str, implied: str) -> str:
    """Return a predicate that demands both; an empty one demands nothing.

    A stated one that is not well-formed is returned alone: its mistake is then found, and shown as it was written. One
    that ends with what is implied, as this function makes it, is complete.
    """
    if not implied or not stated.strip():
        return implied or stated
    if stated == implied or not _is_well_formed(stated):
        return stated
    inside = stated.removesuffix(f") and {implied}")
    is_complete = inside != stated and inside.startswith("(") and _is_well_formed(inside[1:])
    return stated if is_complete else f"({stated}) and {implied}"


def _is_well_formed(text: str) -> bool:
    # A submit without a requirement starts faster without lark.
    from messiahs.language.predicate.parsing import parse_expression  # noqa: PLC0415

    try:
        parse_expression(text)
    except PredicateError:
        return False
    return True
