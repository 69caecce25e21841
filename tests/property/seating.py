"""Check whether a vector contains given machines."""

from collections.abc import Sequence

from messiahs.core.model.descriptions import SDV
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import VARIOUS, Interval, MachineClass, Vector


def is_inside(machine: SDV, machine_class: MachineClass) -> bool:
    """Return whether a machine is one that a class may stand for."""
    said, stated = machine.description(), dict(machine_class.attributes)
    if said.keys() - stated.keys():
        return False
    for name, value in stated.items():
        if name not in said:
            if name not in machine_class.some_lack:
                return False
        elif isinstance(value, Interval):
            own = said[name]
            if isinstance(own, str) or not value.low <= bucket_of(own) <= value.high:
                return False
        elif value is not VARIOUS and value != said[name]:
            return False
    return True


def can_hold_all(machines: Sequence[SDV], vector: Vector) -> bool:
    """Return whether machines can be assigned to classes that contain them, so that every class gets its count."""
    seats = [index for index, machine_class in enumerate(vector.classes) for _ in range(machine_class.count)]
    if len(seats) != len(machines):
        return False
    taken_by: dict[int, int] = {}

    def seat(machine: int, tried: set[int]) -> bool:
        for place, index in enumerate(seats):
            if place not in tried and is_inside(machines[machine], vector.classes[index]):
                tried.add(place)
                if place not in taken_by or seat(taken_by[place], tried):
                    taken_by[place] = machine
                    return True
        return False

    return all(seat(machine, set()) for machine in range(len(machines)))
