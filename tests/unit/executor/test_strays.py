"""The lists of children of a starter: one for each thread that starts processes, as long as there is that thread."""

import threading
from pathlib import Path

from messiahs.executor.linux.strays import Children
from tests.waiting import eventually


def listed_by_a_thread(children: Children) -> None:
    """List the children of a thread that has ended."""
    names: list[str] = []

    def add() -> None:
        children.add_thread()
        names.append(str(Path("/proc/thread-self").readlink()))

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    eventually(lambda: not Path("/proc", *names).exists())


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_lists_of_threads_that_have_ended_are_closed() -> None:
    children = Children()
    listed_by_a_thread(children)
    files = open_files()
    for _ in range(20):
        listed_by_a_thread(children)
    assert open_files() == files
