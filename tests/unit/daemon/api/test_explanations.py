"""What `explain` adds to tasks: machines are matched once for all tasks of a shape."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from messiahs.core.model.ids import ClientKey
from messiahs.daemon.api.explanations import Explanations
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document
from messiahs.daemon.storage.store import RowStore
from tests.unit.core.rig import Rig, make_module
from tests.unit.daemon.api.sliced import Sliced


async def explained(explanations: Explanations, tasks: Tasks, *, names: list[str]) -> list[Document]:
    found = [tasks.find(name) for name in names]
    return [await explanations.document(one) for one in found if one is not None]


async def awaited(sliced: Sliced[list[Document]]) -> list[Document]:
    return await sliced


def test_machines_are_matched_once_for_all_tasks_of_a_shape(tmp_path: Path) -> None:
    rig, store = Rig(module=make_module()), RowStore(tmp_path / "module.db")
    rig.resume()
    rig.submit(members=50, requirement="$speed > 9000000")
    rig.submit(members=50, requirement="$speed > 9000001", key=ClientKey("other"))
    # What the search for tasks uses of a host.
    host = cast("Host", SimpleNamespace(module=rig.module, store=store, system=rig.state.system))
    tasks = Tasks(host)
    names = [f"me.{number}.{member}" for member in range(1, 51) for number in (1, 2)]
    explaining = Sliced(explained(Explanations(host, tasks), tasks, names=names))
    documents = asyncio.run(awaited(explaining))
    store.close()
    assert [each["machines"] is not None for each in documents] == [True] * 100
    assert explaining.in_threads == 2
