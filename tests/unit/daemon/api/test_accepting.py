"""Connections of the local API that arrive at once: few are accepted in a step of the event loop, and none is free."""

import asyncio
import os
import socket
from itertools import pairwise
from pathlib import Path

from messiahs.daemon.api.connection_limits import ACCEPT_NS, Limits
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.host.turns import Work
from messiahs.daemon.host.user_turns import UserTurns


class NotedTurns(UserTurns):
    """Turns that note what each connection costs its user (mutable); nobody waits in them."""

    def __init__(self) -> None:
        super().__init__(on_waiting=lambda: None, on_active=lambda: None)
        self.charged: list[tuple[int, int]] = []

    def charge(self, uid: int, cost_ns: int, *, turn: Work[int] | None = None) -> None:
        """Note a charge."""
        self.charged.append((uid, cost_ns))
        super().charge(uid, cost_ns, turn=turn)


def test_connections_are_accepted_a_few_in_a_step_and_each_is_charged_to_its_user(tmp_path: Path) -> None:
    async def scene() -> None:
        turns, path, limits = NotedTurns(), tmp_path / "a.sock", Limits(of_one=100, of_all=400)
        runner = await serve([], SocketAccess(path=path), limits, turns)
        plugs = [socket.socket(socket.AF_UNIX) for _ in range(300)]
        for plug in plugs:
            # None is accepted before the loop goes on.
            plug.setblocking(False)
            plug.connect(str(path))
        accepted = [0]
        for _ in range(1_000):
            await asyncio.sleep(0)
            accepted.append(len(turns.charged))
        assert accepted[-1] == len(plugs)
        assert max(after - before for before, after in pairwise(accepted)) <= 32
        # Those in excess, which make an earlier one end, and the others.
        assert all(uid == os.getuid() and cost_ns >= ACCEPT_NS for uid, cost_ns in turns.charged)
        for plug in plugs:
            plug.close()
        await runner.cleanup()

    asyncio.run(scene())
