"""What links cost in a simulation: `simulated_links:` beside the systems of a topology (MESSIAHS 5.1).

Real links are measured, so only the simulator reads this.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.quantities import duration_ns, size_bytes
from messiahs.config.topology.borders import Parents
from messiahs.config.topology.problems import Place, Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys
from messiahs.core.model.ids import SystemId
from messiahs.core.model.link_costs import HIGHEST_THROUGHPUT, LONGEST_ROUND_TRIP_NS, LinkCosts
from messiahs.errors import MessiahsError

SIMULATED_LINKS_KEY: Final = "simulated_links"
_KEYS: Final = ("between", "round_trip", "throughput")
_ENDS: Final = 2
_FORM: Final = "a list of {between: [SYSTEM, NEIGHBOR], round_trip: 80ms, throughput: 5MB}"


Links = Mapping[frozenset[SystemId], LinkCosts]
"""The costs of the links between two neighbors each; what they leave open is as without a statement."""


def read_simulated_links(top: Section, parents: Parents, *, problems: Problems) -> Links:
    """Return the links under `simulated_links:`; both ends of each are neighbors by the file."""
    if SIMULATED_LINKS_KEY not in top:
        return {}
    value, place = top.values[SIMULATED_LINKS_KEY], top.value_place(SIMULATED_LINKS_KEY)
    if not isinstance(value, CommentedSeq):
        problems.add(place, f"`{SIMULATED_LINKS_KEY}` takes {_FORM}")
        return {}
    return dict(_read(value, place, parents, problems))


def _read(
    listed: CommentedSeq, place: Place, parents: Parents, problems: Problems
) -> Iterator[tuple[frozenset[SystemId], LinkCosts]]:
    places: Mapping[int, list[int]] = listed.lc.data or {}
    seen: set[frozenset[SystemId]] = set()
    for position, item in enumerate(listed):
        at = Place(places[position][0] + 1, places[position][1] + 1) if position in places else place
        if not isinstance(item, CommentedMap):
            problems.add(at, f"`{SIMULATED_LINKS_KEY}` takes {_FORM}")
            continue
        section = Section(item, at)
        refuse_unknown_keys(section, _KEYS, problems)
        names = section.values.get("between")
        ends = frozenset(SystemId(str(name)) for name in names) if isinstance(names, CommentedSeq) else frozenset()
        if not _are_neighbors(ends, parents):
            problems.add(at, "`between` takes two neighbors: a system and a parent of it, or two systems with one")
        elif ends in seen:
            problems.add(at, f"the link between {' and '.join(sorted(ends))} is listed twice")
        seen.add(ends)
        costs = LinkCosts(
            _quantity(section, "round_trip", duration_ns, problems, most=LONGEST_ROUND_TRIP_NS),
            _quantity(section, "throughput", size_bytes, problems, most=HIGHEST_THROUGHPUT),
        )
        yield ends, costs


def _are_neighbors(ends: frozenset[SystemId], parents: Parents) -> bool:
    """Return whether the names are those of two systems, one above the other or below a common parent."""
    if len(ends) != _ENDS or not parents.keys() >= ends:
        return False
    one, other = ends
    return one in parents[other] or other in parents[one] or not set(parents[one]).isdisjoint(parents[other])


def _quantity(section: Section, key: str, read: Callable[[str], int], problems: Problems, *, most: int) -> int | None:
    if key not in section:
        return None
    try:
        found = read(str(section.values[key]))
    except MessiahsError as error:
        problems.add(section.value_place(key), f"{key}: {error}")
        return None
    if not 1 <= found <= most:
        problems.add(section.value_place(key), f"{key}: more than 0, at most 1h or 1TB a second")
        return None
    return found
