"""The catalogue of attributes for people and programs."""

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, SCOPES, Attribute, Kind, Scope
from messiahs.language.syntax.literals import range_of
from messiahs.language.syntax.quantities import shown

_SUBJECTS = (Scope.MACHINE, Scope.TASK, Scope.PRESENT_TASK)


def spellings_of(attribute: Attribute) -> tuple[str, ...]:
    """Return the spellings of an attribute; the name alone refers to it in blocks about machines or tasks."""
    bare = (f"${attribute.name}",) if attribute.scope in _SUBJECTS else ()
    return (*bare, *(f"${scope}.{attribute.name}" for scope in SCOPES[attribute.scope]))


def range_shown(attribute: Attribute) -> str:
    """Return the range of an attribute in its unit; empty if any value is allowed."""
    if attribute.kind is Kind.STRING:
        return ", ".join(attribute.choices)
    low, high = range_of(attribute)
    if low == INTEGER_LOWEST:
        return "" if high == INTEGER_HIGHEST else f"up to {shown(high, attribute.unit)}"
    ends = shown(low, attribute.unit), shown(high, attribute.unit)
    return f"{ends[0]} and more" if high == INTEGER_HIGHEST else f"{ends[0]} to {ends[1]}"


def facts_of(attribute: Attribute) -> dict[str, object]:
    """Return a row of the catalogue as a JSON document; `low` and `high` are null where there is no bound."""
    low, high = range_of(attribute) if attribute.kind is Kind.INTEGER else (INTEGER_LOWEST, INTEGER_HIGHEST)
    return {
        "name": attribute.name,
        "scope": attribute.scope.value,
        "written": list(spellings_of(attribute)),
        "type": attribute.kind.value,
        "unit": attribute.unit.value,
        "low": None if low == INTEGER_LOWEST else low,
        "high": None if high == INTEGER_HIGHEST else high,
        "choices": list(attribute.choices),
        "supplier": attribute.supplier,
        "optional": attribute.is_optional,
        "meaning": attribute.meaning,
    }
