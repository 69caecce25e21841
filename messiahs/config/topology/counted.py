"""Reading the counted things of a machine: how many GPUs, licences or others it has, or which numbers they have.

A kind is a count, a list of numbers, or a mapping from numbers to the device files of each thing.
"""

from typing import NamedTuple

from ruamel.yaml.comments import CommentedMap

from messiahs.config.device_files import DEVICES, problem_of_path
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, subsection
from messiahs.core.model.attributes import ADDED_ATTRIBUTES, EXTENSION_LIMIT
from messiahs.core.model.counted import HIGHEST_NUMBER, KINDS, THINGS, Counted, free, problem_of_name

COUNTED_KEY = "counted"


class CountedThings(NamedTuple):
    """The things of each kind, and the device files of those kinds that have some, by the numbers of the things."""

    counted: tuple[Counted, ...]
    devices: dict[str, dict[int, tuple[str, ...]]]


def read_counted(section: Section, problems: Problems) -> CountedThings:
    """Return the things of each kind; a mere count stands for the numbers from 0 on."""
    kinds = subsection(section, COUNTED_KEY, problems) if COUNTED_KEY in section else None
    if kinds is None:
        return CountedThings((), {})
    if len(kinds.values) > KINDS:
        problems.add(kinds.place, f"`{COUNTED_KEY}` has {len(kinds.values)} names of at most {KINDS}")
    read: list[Counted] = []
    devices: dict[str, dict[int, tuple[str, ...]]] = {}
    for name, raw in kinds.values.items():
        problem = problem_of_name(str(name))
        if problem:
            problems.add(kinds.key_place(name), f"{name}: {problem}")
            continue
        numbers = _numbers(raw)
        if numbers is None:
            text = f"{name}: `{raw}` is neither a count up to {THINGS} nor a list of at most as many different numbers"
            problems.add(kinds.value_place(name), f"{text} from 0 to {HIGHEST_NUMBER}, such as [0, 1]")
            continue
        read.append(Counted(name=str(name), numbers=numbers))
        if isinstance(raw, CommentedMap):
            devices[str(name)] = _devices_of(Section(raw, kinds.value_place(name)), str(name), problems)
    return CountedThings(tuple(read), devices)


def check_attributes(section: Section, problems: Problems, /, *, counted: tuple[Counted, ...]) -> None:
    """Refuse extension attributes that counted things have already, and more of both than a description can have."""
    own = section.values.get("attributes")
    names = list(own) if isinstance(own, dict) else []
    for name in (name for things in counted for name in (things.name, free(things.name)) if name in names):
        problems.add(section.key_place("attributes"), f"{name}: its value follows from `{COUNTED_KEY}`")
    most = EXTENSION_LIMIT - len(ADDED_ATTRIBUTES)
    if counted and len(names) + 2 * len(counted) > most:
        text = f"at most {most} attributes of its own, and each kind of counted things takes two of them"
        problems.add(section.key_place(COUNTED_KEY), f"{COUNTED_KEY}: a machine has {text}")


def _devices_of(things: Section, kind: str, problems: Problems, /) -> dict[int, tuple[str, ...]]:
    read: dict[int, tuple[str, ...]] = {}
    for number, raw in things.values.items():
        if not isinstance(raw, list) or not 0 < len(raw) <= DEVICES or not all(isinstance(each, str) for each in raw):
            text = f"{kind}: {number}: `{raw}` is no list of 1 to {DEVICES} device files, such as [/dev/nvidia0]"
            problems.add(things.value_place(number), text)
            continue
        read[int(number)] = tuple(map(str, raw))
        for path, problem in ((each, problem_of_path(str(each))) for each in raw):
            if problem:
                problems.add(things.value_place(number), f"{kind}: {number}: `{path}` {problem}: no task may have it")
    return read


def _numbers(raw: object) -> tuple[int, ...] | None:
    if isinstance(raw, CommentedMap):
        raw = list(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return tuple(range(raw)) if 0 <= raw <= THINGS else None
    if not isinstance(raw, list) or len(raw) > THINGS or not all(map(_is_number, raw)) or len(set(raw)) < len(raw):
        return None
    return tuple(sorted(map(int, raw)))


def _is_number(each: object) -> bool:
    return isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= HIGHEST_NUMBER
