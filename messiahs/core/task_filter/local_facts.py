"""What a policy is told of the own system, `$here`: of its machine, and of what the module itself knows."""

from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import reserving_claims, seen_by_owner
from messiahs.core.task_filter.unmet_demand import demands


def own_facts(state: ModuleState, now: Instant) -> dict[str, Value]:
    """Give everything that is known of the own system, whatever task is spoken of."""
    sdv = seen_by_owner(state)
    said: dict[str, Value] = sdv.description() if sdv is not None else {}
    return said | module_facts(state, now)


def module_facts(state: ModuleState, now: Instant) -> dict[str, Value]:
    """Give what a module knows of itself, also without a machine: `tasks` that are held here, and what is `waiting`.

    Waiting are the tasks of local users, and those of neighbors for which there was no room here. None of them is
    `waiting_above` a task that does not run: `running_queries` counts them for those that do.
    """
    return {
        "waiting_above": 0,
        "tasks": sum(claim.live for claim in reserving_claims(state)),
        "waiting": state.origin.waiting + sum(demand.count for _, demand in demands(state, now)),
    }
