"""The machines that every module of a quiet federation must know (MESSIAHS 7.2, 7.3, theorems 1 and 2).

Computed from the parents of all systems alone, without the core's sums: as sets that hold each machine once.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

Machines = Counter[str]
"""How often each machine is counted; a machine has the name of its system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinship:
    """The relations of systems: the parents of each, the primary parent first, and the links between siblings."""

    parents: Mapping[str, tuple[str, ...]]
    with_machine: frozenset[str]
    sibling_links: frozenset[tuple[str, str]]
    """Pairs in order of name."""

    def primary(self, system: str) -> str | None:
        """Return the primary parent, None at a root."""
        return next(iter(self.parents[system]), None)

    def are_linked_siblings(self, one: str, other: str) -> bool:
        """Return whether two systems have a link as siblings."""
        return (min(one, other), max(one, other)) in self.sibling_links

    def primary_children(self, system: str) -> list[str]:
        """Return the systems whose primary parent is `system`."""
        return [child for child in self.parents if self.primary(child) == system]

    def primary_tree(self, root: str) -> list[str]:
        """Return a system and its primary descendants."""
        tree = [root]
        for system in tree:
            tree += self.primary_children(system)
        return tree

    def root_of(self, system: str) -> str:
        """Return the topmost primary ancestor, or the system itself."""
        while (parent := self.primary(system)) is not None:
            system = parent
        return system

    def machines(self, systems: Collection[str]) -> Machines:
        """Return the machines of systems."""
        return Counter(system for system in systems if system in self.with_machine)

    def up(self, system: str) -> Machines:
        """Return U, and S: the machines of the primary tree below a system."""
        return self.machines(self.primary_tree(system))

    def down(self, system: str) -> Machines:
        """Return D, if siblings hear each other or are informed by their parent: the tree except what is below."""
        below = self.up(system) - self.machines([system])
        return self.up(self.root_of(system)) - below

    def down_to(self, parent: str, child: str) -> Machines:
        """Return what a parent sends one child: D, and the machines of primary children that the child does not hear.

        The second part goes beyond equation 20. A child of another primary parent hears none of them.
        """
        machines = self.down(parent)
        for other in self.primary_children(parent):
            if other != child and not self.are_linked_siblings(child, other):
                machines += self.up(other)
        return machines
