"""Plans as types: what would become of tasks if they were submitted now."""

from typing import Any, NotRequired, TypedDict

from messiahs.client.status import FittingMachines, LeftOut, Predecessor, Reason, Round, Search


class PlannedSystem(TypedDict):
    """A system in the order of a planned search, and `why` it has this place in it.

    For the own machine, `answer` is `granted`, with the `places` that it would grant, or the code of its denial, with
    its reasons. For a neighbor it is `not_asked`: what that would answer is not known.
    """

    system: str
    why: str
    answer: str
    places: int
    reasons: list[Reason]


class PlannedSearch(TypedDict):
    """A search that does not take place: who would be asked, in which order, and who would be left out.

    `unlisted` counts further ones.
    """

    at: str
    order: list[PlannedSystem]
    left_out: list[LeftOut]
    unlisted: int


class HeldRoom(TypedDict):
    """How many of the tasks a system takes at once, in a claim that is held for such tasks already."""

    system: str
    tasks: int


class TaskPlan(TypedDict):
    """What would become of tasks if they were submitted at `at`; if they have several `descriptions`, of the first.

    `others` are plans for up to 15 further descriptions, each as if the tasks with the others got no places.

    `outcome` is `start` (somewhere, at once), `wait` or `deny`; with `is_sure` it depends on nobody else. `tasks` of
    them would look for a place, behind `ahead` tasks of the same description that wait now, and others wait for those
    in `after` first. At most `asks` neighbors would be asked, of whom those that are `likely` show room; unless it
    `is_known`, all of these are silent about something that the task needs, and may not have it. The `reasons` say why
    the first task would not start; `machines` are as in `Client.explain`. Of the tasks ahead, `round` and `last_search`
    say what they wait for, and what was answered.

    Neighbors are judged by what they last advertised; when asked, they decide by their own policy.
    """

    at: str
    outcome: str
    is_sure: bool
    is_known: bool
    tdv: dict[str, Any]
    requirement: str
    tasks: int
    descriptions: int
    ahead: int
    after: list[Predecessor]
    held: list[HeldRoom]
    search: PlannedSearch | None
    likely: list[str]
    asks: int
    reasons: list[Reason]
    round: Round | None
    last_search: Search | None
    machines: FittingMachines
    others: NotRequired[list["TaskPlan"]]
