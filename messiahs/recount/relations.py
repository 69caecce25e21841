"""Who counts whom: the sets of MESSIAHS 7.3 (equations 14 to 18), from what both ends of a link say."""

from collections import Counter
from collections.abc import Iterator, Mapping

from messiahs.recount.checks import Check, Deviation, Place, What
from messiahs.recount.facts import Kind, Module, Modules, Neighbor


def primary_parent(modules: Modules, module: Module) -> str | None:
    """Return PP (equation 14): the parent at which a system is counted; None without a link to it."""
    return module.counted_at if module.counted_at in _linked(modules, module) else None


def primary_children(modules: Modules, module: Module) -> tuple[str, ...]:
    """Return PC (equation 15): the children that say that they are counted here.

    Of a child that was not read, the module's own word is taken.
    """
    return tuple(
        name
        for name, neighbor in _linked(modules, module).items()
        if neighbor.relations.is_child and _is_counted_here(modules, module, neighbor)
    )


def primary_siblings(modules: Modules, module: Module) -> tuple[str, ...]:
    """Return PS (equation 16) as far as there are links: siblings that are counted at the same primary parent."""
    return tuple(
        name
        for name, neighbor in _linked(modules, module).items()
        if neighbor.relations.is_sibling and _is_beside(modules, module, neighbor)
    )


def unheard_children(module: Module, child: str, children: tuple[str, ...], /) -> tuple[str, ...]:
    """Return the primary children whose U is in the vector for a child: all that it does not hear as siblings."""
    said = module.neighbors[child].received.get(Kind.UP)
    heard = {child, *(said.hears if said is not None else ())}
    return tuple(name for name in children if name not in heard)


def relation_checks(modules: Modules) -> Iterator[Check]:
    """Check that each system is counted once: by its primary parent alone, and by siblings of the same one."""
    for module in modules.values():
        for neighbor in _linked(modules, module).values():
            other = modules.get(neighbor.name)
            if neighbor.relations.is_child and other is not None:
                yield _counts_child(module, other)
            if neighbor.relations.is_sibling and other is not None:
                yield _counts_sibling(modules, module, other)
        yield _is_no_ancestor_of_itself(modules, module)
        yield from _covers_its_tree(modules, module)


def machines_below(modules: Modules, module: Module) -> tuple[str, ...]:
    """Return the systems with a machine in U of a module: itself and its primary descendants (equation 18)."""
    return tuple(name for name in _below(modules, module, ()) if modules[name].has_machine)


def machines_towards(modules: Modules, module: Module, child: str, /) -> tuple[str, ...]:
    """Return the systems with a machine in the vector of a module for a child."""
    return tuple(name for name in _sent_down(modules, module, child, ()) if modules[name].has_machine)


def machines_sent(modules: Modules, sender: str, receiver: str, kind: Kind, /) -> tuple[str, ...]:
    """Return the systems with a machine in a vector, as far as modules were read."""
    if sender not in modules:
        return ()
    if kind is Kind.DOWN:
        is_child = receiver in modules[sender].neighbors
        return machines_towards(modules, modules[sender], receiver) if is_child else ()
    return machines_below(modules, modules[sender])


def _linked(modules: Modules, module: Module) -> Mapping[str, Neighbor]:
    """Return the neighbors whose vectors can be in sums: linked, and neither end is ending the link."""

    def is_ending(other: Module | None) -> bool:
        back = other.neighbors.get(module.name) if other is not None else None
        return back is not None and back.is_leaving

    return {
        name: neighbor
        for name, neighbor in module.neighbors.items()
        if neighbor.is_linked and not neighbor.is_leaving and not is_ending(modules.get(name))
    }


def _is_counted_here(modules: Modules, module: Module, neighbor: Neighbor) -> bool:
    child = modules.get(neighbor.name)
    return child.counted_at == module.name if child is not None else neighbor.counted.is_primary_child


def _is_beside(modules: Modules, module: Module, neighbor: Neighbor) -> bool:
    other = modules.get(neighbor.name)
    if other is None:
        return neighbor.counted.is_sibling
    return module.is_in_place and other.is_in_place and module.counted_at == other.counted_at


def _counts_child(module: Module, child: Module) -> Check:
    """Check that a parent counts a child if and only if the child is counted there."""
    at = Place(module=module.name, neighbor=child.name, equation=15)
    counts = module.neighbors[child.name].counted.is_primary_child
    if counts == (child.counted_at == module.name):
        return Check(place=at)
    where = f"counted at {child.counted_at}" if child.counted_at is not None else "counted at no parent"
    text = f"it counts {child.name}, which is {where}" if counts else f"it does not count {child.name}, as it should"
    what = What.TWICE if counts else What.LOST
    return Check(place=at, deviations=(Deviation(what=what, count=1, machines=(child.name,), text=text),))


def _counts_sibling(modules: Modules, module: Module, other: Module) -> Check:
    """Check that siblings count each other if and only if they have one primary parent."""
    at = Place(module=module.name, neighbor=other.name, equation=16)
    neighbor = module.neighbors[other.name]
    counts = neighbor.counted.is_sibling
    if counts == _is_beside(modules, module, neighbor):
        return Check(place=at)
    parents = f"{module.name} is counted at {module.counted_at}, {other.name} at {other.counted_at}"
    text = f"it {'counts' if counts else 'does not count'} its sibling {other.name}: {parents}"
    what = What.TWICE if counts else What.LOST
    return Check(place=at, deviations=(Deviation(what=what, count=1, machines=(other.name,), text=text),))


def _is_no_ancestor_of_itself(modules: Modules, module: Module) -> Check:
    """Check that a system is not among its own primary ancestors (equation 17); its machine would be counted again."""
    at = Place(module=module.name, neighbor=module.name, equation=17)
    way, present = [module.name], primary_parent(modules, module)
    while present is not None and present in modules and present not in way:
        way.append(present)
        present = primary_parent(modules, modules[present])
    if present != module.name:
        return Check(place=at)
    text = f"it is its own primary ancestor: {' is counted at '.join((*way, module.name))}"
    found = Deviation(what=What.TWICE, count=1, machines=tuple(way), text=text)
    return Check(place=at, deviations=(found,))


def _covers_its_tree(modules: Modules, module: Module) -> Iterator[Check]:
    """Check that a module knows each machine of its primary tree once, by its parent, siblings and children together.

    Not where a policy withholds vectors on the way: then machines are missing on purpose.
    """
    if _is_any_withheld(modules):
        return
    at = Place(module=module.name, neighbor=module.name, equation=20, about="the whole tree")
    known = Counter(name for name in _known(modules, module) if modules[name].has_machine)
    tree = machines_below(modules, modules[_root_of(modules, module)])
    twice = tuple(sorted(name for name, count in known.items() if count > 1))
    lost = tuple(sorted(name for name in tree if name not in known))
    found = []
    if twice:
        text = f"it knows machines twice, by its parent, siblings and children: {', '.join(twice)}"
        found.append(Deviation(what=What.TWICE, count=len(twice), machines=twice, text=text))
    if lost:
        text = f"it does not know machines of its primary tree: {', '.join(lost)}"
        found.append(Deviation(what=What.LOST, count=len(lost), machines=lost, text=text))
    yield Check(place=at, deviations=tuple(found))


def _is_any_withheld(modules: Modules) -> bool:
    return any(
        sent.is_withheld
        for module in modules.values()
        for neighbor in module.neighbors.values()
        for sent in neighbor.sent.values()
    )


def _root_of(modules: Modules, module: Module) -> str:
    way, present = [module.name], primary_parent(modules, module)
    while present is not None and present in modules and present not in way:
        way.append(present)
        present = primary_parent(modules, modules[present])
    return way[-1]


def _known(modules: Modules, module: Module) -> Iterator[str]:
    """Yield the systems of all machines that a module knows: its own, above, beside and below."""
    yield from _below(modules, module, ())
    yield from _above(modules, module, ())


def _below(modules: Modules, module: Module, way: tuple[str, ...]) -> Iterator[str]:
    """Yield the systems in U (equation 19); a cycle ends where it closes."""
    if module.name in way:
        return
    yield module.name
    for name in primary_children(modules, module):
        if name in modules:
            yield from _below(modules, modules[name], (*way, module.name))


def _above(modules: Modules, module: Module, way: tuple[str, ...]) -> Iterator[str]:
    """Yield the systems in D of the primary parent and S of the siblings (equation 20)."""
    parent = primary_parent(modules, module)
    if parent in modules and parent is not None:
        yield from _sent_down(modules, modules[parent], module.name, way)
    for name in primary_siblings(modules, module):
        if name in modules:
            yield from _below(modules, modules[name], ())


def _sent_down(modules: Modules, module: Module, child: str, way: tuple[str, ...]) -> Iterator[str]:
    """Yield the systems in the vector for a child; a cycle ends where it closes."""
    if module.name in way:
        return
    yield module.name
    yield from _above(modules, module, (*way, module.name))
    for name in unheard_children(module, child, primary_children(modules, module)):
        if name in modules:
            yield from _below(modules, modules[name], ())
