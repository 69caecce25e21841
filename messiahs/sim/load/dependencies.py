"""Orders of a swarm run that wait for others of the same module."""

from dataclasses import replace
from random import Random
from typing import Final

from messiahs.core.interface.dependencies import When
from messiahs.sim.load.users import Order

_FOR_ALL: Final = (When.STARTED, When.ENDED, When.OK)


def ordered(random: Random, eaches: Random, orders: list[Order], /) -> list[Order]:
    """In a third of all runs, let about half of the orders wait for one or two earlier ones of their module.

    An order waits for all tasks of the other one, or, drawn from `eaches`, gets as many members and waits for each.
    """
    if random.randrange(3):
        return orders
    for place, order in enumerate(orders):
        before = [other for other in orders[:place] if other.system == order.system]
        if before and random.randrange(2):
            chosen = random.sample(before, min(len(before), random.randrange(1, 3)))
            order.after = tuple((other, random.choice(_FOR_ALL)) for other in chosen)
            if eaches.randrange(2):
                _wait_for_each(order)
    return orders


def bundled(random: Random, orders: list[Order], /) -> list[Order]:
    """In a third of all runs, let a user submit the first orders of a module together, as a workflow.

    They wait only for each other, as an order waits only for earlier ones of its module.
    """
    system = random.choice([order.system for order in orders])
    of_it = [order for order in orders if order.system == system]
    if random.randrange(3) == 0 and len(of_it) > 1:
        bundle = tuple(of_it[: random.randrange(2, len(of_it) + 1)])
        for order in bundle:
            order.bundle = bundle
    return orders


def _wait_for_each(order: Order) -> None:
    """Let the members of an order wait for those of the arrays among the others that are as large as the first one."""
    members = next((other.event.members for other, _ in order.after if other.event.members), 0)
    if not members:
        return
    order.event = replace(order.event, members=members)
    order.cancelled_member = min(order.cancelled_member, members)
    order.retried_member = min(order.retried_member, members)
    order.after = tuple((other, When.EACH if other.event.members == members else when) for other, when in order.after)
