"""Which known machines could take a task, and what would have to change so that more could."""

from messiahs.core.model.counted import requirement_for
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.images import IMAGE_REQUIREMENT
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Vector, vector_of
from messiahs.language.explaining.fitting_machines import FittingMachines, fitting_machines
from messiahs.language.explaining.relaxing import Effort, changes_for
from messiahs.language.explaining.requirements import demands_apart
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.runtime.readings import TASK

GIB = 1 << 30


def machine(**said: int | str) -> SDV:
    return SDV(sorted_pairs({"slots": 2, "total_mem": 8 * GIB, "total_disk": 64 * GIB, "speed": 300, **said}))


KNOWN = Vector(
    tuple(
        one
        for sdv in (machine(), machine(slots=8, speed=900), machine(total_mem=32 * GIB, gpus=1))
        for one in vector_of(sdv).classes
    )
)


def found(requirement: str = "", **stated: int) -> FittingMachines:
    tdv = TDV(sorted_pairs({"cpus": 1, "origin": "home", "user": "ann", **stated}))
    return fitting_machines(tdv, parse_predicate(requirement), KNOWN)


def test_machines_count_as_large_as_they_are_whether_or_not_they_are_idle() -> None:
    assert found().fitting.surely == 3
    assert found(mem=16 * GIB).fitting.surely == 1


def test_a_task_that_is_too_large_reads_how_large_it_may_be() -> None:
    large = found(cpus=20)
    assert large.fitting.could == 0
    assert [loss.text for loss in large.losses] == ["$slots >= $cpus"]
    assert ("$cpus were at most 8", 1) in [(change.text, change.machines.surely) for change in large.changes]


def test_a_requirement_that_no_machine_meets_reads_which_value_would_do() -> None:
    fast = found("$speed > 2000")
    assert fast.fitting.could == 0
    assert any(change.text.startswith("`$speed > 2000` were `$speed > ") for change in fast.changes)


def test_counted_things_are_a_demand_like_sizes() -> None:
    assert found(gpus=2).fitting.surely == 0
    needs_two = found(requirement_for([("gpus", 2)]), gpus=2)
    assert [loss.text for loss in needs_two.losses] == ["$gpus >= 2 (not known of 2 machines)"]
    needs_licences = found(requirement_for([("licences", 1)]), licences=1)
    assert [loss.text for loss in needs_licences.losses] == [
        "$licences >= 1 (no machine known here says that it has any)"
    ]


def test_nothing_else_is_advised_than_the_sandbox_that_an_image_needs() -> None:
    boxes = Vector(vector_of(machine(isolation="bubblewrap")).classes)
    tdv = TDV(sorted_pairs({"cpus": 1, "origin": "home", "user": "ann"}))
    advised = fitting_machines(tdv, parse_predicate(IMAGE_REQUIREMENT), boxes).changes
    assert [change.text for change in advised] == [f'`{IMAGE_REQUIREMENT}` were `$isolation eq "bubblewrap"`']
    of_image = TDV(sorted_pairs({**tdv.description(), "image": "0" * 64}))
    assert fitting_machines(of_image, parse_predicate(IMAGE_REQUIREMENT), boxes).changes == ()


def test_a_long_requirement_is_counted_without_looking_for_changes() -> None:
    long = " or ".join(f"$speed > {2000 + number}" for number in range(200))
    assert found(long).fitting.could == 0
    assert found(long).changes == ()


def spent_on(comparisons: int, *, most: int) -> tuple[int, int]:
    """Return how many comparisons were evaluated for so many in a requirement, and how many changes were found."""
    demands = demands_apart(parse_predicate(" and ".join(f"$speed > {2_000 + each}" for each in range(comparisons))))
    facts = {TASK: TDV(sorted_pairs({"cpus": 1, "origin": "home", "user": "ann"})).description()}
    effort = Effort(most)
    changes = changes_for(demands, facts, IndexedVector(KNOWN), effort=effort)
    return most - effort.left, len(changes)


def test_for_each_value_that_is_tried_only_the_demand_with_that_value_is_evaluated_again() -> None:
    two, _ = spent_on(2, most=1 << 20)
    many, _ = spent_on(50, most=1 << 20)
    assert many == 25 * two > 0


def test_values_beyond_the_effort_are_not_tried() -> None:
    assert spent_on(1, most=1 << 20)[1] == 1
    assert spent_on(1, most=0) == (0, 0)
    assert spent_on(50, most=100)[0] <= 100
