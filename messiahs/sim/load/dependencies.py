"""Orders of a swarm run that wait for others of the same module."""

from random import Random

from messiahs.core.interface.dependencies import When
from messiahs.sim.load.users import Order


def ordered(random: Random, orders: list[Order]) -> list[Order]:
    """In a third of all runs, let about half of the orders wait for one or two earlier ones of their module.

    An order waits for all tasks of the other one.
    """
    if random.randrange(3):
        return orders
    for place, order in enumerate(orders):
        before = [other for other in orders[:place] if other.system == order.system]
        if before and random.randrange(2):
            chosen = random.sample(before, min(len(before), random.randrange(1, 3)))
            order.after = tuple((other, random.choice(tuple(When))) for other in chosen)
    return orders
