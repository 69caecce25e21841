"""Parts of policies from other distributions: the entry points of the group `messiahs.policies`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from re import fullmatch
from typing import TYPE_CHECKING, Final

from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.model.attributes import Value
from messiahs.core.model.texts import has_control
from messiahs.language.syntax.scanning import KEYWORDS
from messiahs.policy.built_in import BUILT_IN, Catalogue, Found
from messiahs.policy.external_parts import SAFE, Guarded, failure_text, why_no_state
from messiahs.policy.parts import Decider, DeclaredPart

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "messiahs.policies"
_NAME: Final = r"[a-z_][a-z0-9_]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSource:
    """The origin of a part: its name, its distribution and the version of the distribution."""

    name: str
    distribution: str
    version: str


def catalogue() -> Catalogue:
    """Return the parts that policies may name here; installed ones are loaded when a policy first names one."""
    return Catalogue(find=_installed)


def why_not_as_recorded(parts: Iterable[PartSource]) -> tuple[str, ...]:
    """Return a text for each part that is missing, or installed in another version than recorded."""
    return tuple(
        f"the part `{each.name}` was recorded with {each.distribution} {each.version}, {found}"
        for each in parts
        if (found := _other_version(each))
    )


def _other_version(part: PartSource) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - see _installed

    try:
        found = version(part.distribution)
    except PackageNotFoundError:
        return "which is not installed"
    return "" if found == part.version else f"and {found} is installed"


def _installed() -> Found:
    """Load all entry points; a broken one is reported only where a policy names it."""
    # Few policies name a part, and this import is slow.
    from importlib.metadata import entry_points  # noqa: PLC0415

    loaded: dict[str, list[DeclaredPart]] = {}
    broken: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        try:
            part = _loaded(point)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            broken[point.name] = f"{_origin(point)} cannot be used: {failure_text(error)}"
        else:
            loaded.setdefault(part.name, []).append(part)
    parts: list[DeclaredPart] = []
    for name, found in loaded.items():
        origins = " and ".join(f"{each.distribution} {each.version}" for each in found)
        if any(each.name == name for each in BUILT_IN):
            broken[name] = f"{origins} cannot be used: there is a built-in part of this name"
        elif len(found) > 1:
            broken[name] = f"{origins} both install a part of this name"
        else:
            parts.extend(found)
    return Found(parts=tuple(parts), broken=broken)


def _loaded(point: "EntryPoint") -> DeclaredPart:
    part = point.load()
    for problem in _problems(point, part):
        raise TypeError(problem)
    assert isinstance(part, DeclaredPart)
    make, kind = part.make, part.kind

    def guarded(**values: Value) -> Decider:
        made: Decider = make(**values)
        state: PartState = made.initial
        if why := why_no_state(state):
            raise TypeError(why)
        return Guarded(kind, made, state)

    distribution = point.dist
    assert distribution is not None, "installed entry points have a distribution"
    return replace(part, make=guarded, distribution=distribution.name, version=distribution.version)


def _problems(point: "EntryPoint", part: object) -> Iterator[str]:
    if not isinstance(part, DeclaredPart):
        yield f"{point.value} is no DeclaredPart"
        return
    if part.name != point.name:
        yield f"the part is named {part.name!r}, and its entry point {point.name!r}"
    if type(part.kind) is not PartKind or part.kind not in SAFE:
        yield f"no part of the kind {part.kind!r} can be named"
    make: object = part.make
    if not callable(make):
        yield f"{make!r} does not make a part"
    if has_control(part.meaning):
        yield "its meaning has control characters"
    names = [each.name for each in part.parameters]
    if len(set(names)) < len(names):
        yield "two of its parameters have the same name"
    for each in part.parameters:
        if each.default is not None and not each.may_be(each.default):
            yield f"the default of its parameter {each.name}, {each.default!r:.100}, is not a value that it may have"
    for name in (part.name, *names):
        if fullmatch(_NAME, name) is None or name in KEYWORDS:
            yield f"{name!r} cannot be written in a policy"


def _origin(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
