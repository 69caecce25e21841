"""What a starter of an earlier release, which still runs tasks, would ignore of a start."""

from typing import Final

from messiahs.config.device_files import Devices, devices_for
from messiahs.config.settings import PROCESS
from messiahs.core.interface.actions import StartAttempt
from messiahs.executor.protocol.frames import Hello

_STILL: Final = "the starter of an earlier release still runs tasks here: it has to end before tasks get other "


def why_not_started(action: StartAttempt, hello: Hello | None, *, devices: Devices) -> str:
    """Return why an attempt must not be started by the starter that has greeted so; empty if it may be.

    Counted things of the machine have these `devices`, which tasks without a sandbox see anyway.
    """
    if hello is None:
        return ""
    if action.account and not hello.maps_accounts:
        return f"{_STILL}accounts"
    if action.environment and not hello.shows_environments:
        return f"{_STILL}environments"
    if action.command.cwd and not hello.shows_environments:
        # Both came with one release.
        return f"{_STILL}folders"
    if action.command.terminal is not None and not hello.has_terminals:
        return f"{_STILL}terminals"
    if hello.isolation != PROCESS and not hello.shows_devices and devices_for(action.assigned, devices):
        return f"{_STILL}devices"
    return f"{_STILL}networks" if action.network and not hello.narrows_networks else ""
