"""Keeping the history of what neighbors report and of the own machine, as far as the policy says so (MESSIAHS 5.1).

A value of a neighbor is the mean over the machines of the view by which tasks are placed with it: for each class, the
middle of its interval. It holds until the next vector, or until the view is forgotten, when the neighbor is silent or
its connection ends. A value of the own machine holds until it is described again.
"""

from collections.abc import Iterable, Mapping

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.series import Series
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import viewed_kind
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.vectors import Interval, Vector


def note_vector(
    state: ModuleState, system: SystemId, kind: VectorKind, /, *, vector: Vector, before: Vector | None, now: Instant
) -> None:
    """Add the values of a neighbor's vector, which may be the same object as the one `before` it."""
    kept = state.policy.histories
    if not kept or kind is not viewed_kind(state.neighbors[system]):
        return
    known = state.updates.histories.series.get(system)
    if known is not None and vector is before:
        values: Mapping[str, int | None] = {name: series.value for name, series in known.items()}
    else:
        values = mean_values(vector, [each.name for each in kept])
    _note(state, system, values, now)


def note_own(state: ModuleState, facts: Mapping[str, Value] | None, now: Instant) -> None:
    """Add the values of the own machine; None if it is not described."""
    kept = state.policy.histories
    if not kept or (facts is None and state.system not in state.updates.histories.series):
        return
    said = facts or {}
    numbers = ((each.name, said.get(each.name)) for each in kept)
    _note(state, state.system, {name: value for name, value in numbers if isinstance(value, int)}, now)


def note_forgotten(state: ModuleState, system: SystemId, now: Instant) -> None:
    """End the present values of a neighbor whose view is forgotten; what they were remains known."""
    if system in state.updates.histories.series:
        _note(state, system, {}, now)


def forget_history(state: ModuleState, system: SystemId) -> None:
    """Forget the history of a system that is no neighbor any more, or that is another system than before."""
    state.updates.histories.series.pop(system, None)


def on_policy_changed(state: ModuleState) -> None:
    """Forget histories that the new policy does not keep, or that have another length in it."""
    lengths = {each.name: each.length_ns for each in state.policy.histories}
    histories = state.updates.histories
    for system, known in list(histories.series.items()):
        histories.series[system] = {
            name: series for name, series in known.items() if lengths.get(name) == series.length_ns
        }
        if not histories.series[system]:
            del histories.series[system]


def mean_values(vector: Vector, names: Iterable[str]) -> dict[str, int]:
    """Return the mean of each named number over the machines of a vector, rounded down; none where no class has it."""
    wanted = dict.fromkeys(names, (0, 0))
    for machine_class in vector.classes:
        count = machine_class.count
        for name, value in machine_class.attributes:
            if name in wanted and isinstance(value, Interval):
                total, machines = wanted[name]
                middle = (lowest_in(value.low) + highest_in(value.high)) // 2
                wanted[name] = (total + count * middle, machines + count)
    return {name: total // machines for name, (total, machines) in wanted.items() if machines}


def _note(state: ModuleState, system: SystemId, values: Mapping[str, int | None], now: Instant) -> None:
    known = state.updates.histories.series.setdefault(system, {})
    for each in state.policy.histories:
        value, series = values.get(each.name), known.get(each.name)
        if series is None and value is not None:
            series = Series(length_ns=each.length_ns, since=now)
        if series is not None:
            known[each.name] = series.then(None if value is None else each.bounded(value), now)
