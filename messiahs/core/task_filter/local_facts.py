"""The facts about its own system that a policy reads as `$here`: those of its machine, and those of the module."""

from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import reserving_claims, seen_by_owner
from messiahs.core.task_filter.unmet_demand import demands
from messiahs.core.task_filter.withheld import dial_of


def own_facts(state: ModuleState, now: Instant) -> dict[str, Value]:
    """Return all facts about the own system that do not depend on a task."""
    sdv = seen_by_owner(state)
    facts: dict[str, Value] = sdv.description() if sdv is not None else {}
    return facts | module_facts(state, now)


def module_facts(state: ModuleState, now: Instant) -> dict[str, Value]:
    """Return the facts of a module, with or without a machine: `tasks` held here, tasks `waiting`, the owner's dial.

    Waiting are the tasks of local users, and those of neighbors that found no room here. `waiting_above` is 0 unless a
    running task is concerned: `running_queries` counts it for those. The history of the own machine is among them.
    """
    return {
        **dict(state.updates.histories.facts_of(state.system, now)),
        "waiting_above": 0,
        "lent": dial_of(state).value,
        "tasks": sum(claim.live for claim in reserving_claims(state)),
        "waiting": state.origin.waiting + sum(demand.count for _, demand in demands(state, now)),
    }
