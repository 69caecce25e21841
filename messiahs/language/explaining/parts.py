"""List the parts that decide under a policy, with their parameters: those named in the file, and the defaults."""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.interface.parts import PartKind
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.part_keys import part_in
from messiahs.policy.open_policy import OpenPolicy
from messiahs.policy.parts import DeclaredPart, NamedPart


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPart:
    """A part that decides, as a policy file names it; `is_default` if it decides without being named, too."""

    kind: PartKind
    text: str
    declared: DeclaredPart
    is_default: bool


def parts_of(policy: CompiledPolicy | OpenPolicy, /) -> tuple[UsedPart, ...]:
    """Return the parts of a policy, in the order of their kinds; an order with keys only has no part."""
    default = {each.declared.kind: each.text for each in _named_parts(OpenPolicy())}
    return tuple(
        UsedPart(
            kind=each.declared.kind,
            text=each.text,
            declared=each.declared,
            is_default=default[each.declared.kind] == each.text,
        )
        for each in _named_parts(policy)
    )


def _named_parts(policy: CompiledPolicy | OpenPolicy) -> Iterator[NamedPart]:
    for order in (
        policy.update,
        policy.location,
        policy.sources,
        policy.selection,
        policy.migration,
        policy.allocation,
    ):
        part = order if isinstance(order, NamedPart) else part_in(getattr(order, "keys", ()))
        if isinstance(part, NamedPart):
            yield part
