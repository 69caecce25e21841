"""Systems that nobody can dial, as the swarm draws them."""

from messiahs.config.topology.reach import OPEN, OUTBOUND, dialer
from messiahs.sim.load.draw import draw


def test_some_federations_have_such_systems_and_every_link_can_be_dialed() -> None:
    counts = []
    for seed in range(40):
        systems = draw(seed).systems
        outbound = [system for system in systems.values() if system.reach == OUTBOUND]
        counts.append(len(outbound))
        for system in outbound:
            assert system.neighbors
            assert all(dialer(system, systems[other.system]) is not None for other in system.neighbors)
    assert 0 in counts
    assert max(counts) > 1
    assert {system.reach for system in draw(0).systems.values()} <= {OPEN, OUTBOUND, "proxy"}
