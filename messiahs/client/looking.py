"""A client that asks a module without waiting long for it, since one that is silent is a finding, too."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from messiahs.client.local_sockets import connected, process_behind
from messiahs.client.locating import ModulePlace
from messiahs.client.module import ModuleClient
from messiahs.client.silence import is_stopped, silence_of
from messiahs.errors import ModuleSilentError

_SECONDS: Final = 4.0


@contextmanager
def looking_at(place: ModulePlace, process: int | None) -> Iterator[ModuleClient]:
    """Yield a client that waits seconds for each answer; raises `ModuleSilentError` at once if `process` is stopped.

    `process` is the daemon, None if that is not known.
    """
    if process is not None and is_stopped(process):
        raise ModuleSilentError(silence_of(place.socket, process))
    with ModuleClient(place.socket, patience=0, answer_seconds=_SECONDS) as client:
        yield client


def refuse_stopped(place: ModulePlace) -> None:
    """Raise `ModuleSilentError` if the process that listens for a module is stopped, before a request waits for it.

    A module that does not run, or is only slow, is left to the request.
    """
    try:
        plug = connected(place.socket, seconds=_SECONDS)
    except OSError:
        return
    with plug:
        process = process_behind(plug)
    if process is not None and is_stopped(process):
        raise ModuleSilentError(silence_of(place.socket, process))
