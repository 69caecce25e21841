"""A link with a delay: a relay of packets between two network namespaces, which no kernel module has to offer.

`python -m tests.netns.delay ONE OTHER SECONDS` makes the device `late` in each namespace. What is sent to one of them
leaves the other after so many seconds. It prints a line when both are there, and ends with its input.
"""

import asyncio
import fcntl
import os
import struct
import sys
from functools import partial

from tests.live.site_daemons import inside

_MTU_BYTES = 1_500
_SET_INTERFACE = 0x400454CA
_TUN_WITHOUT_HEADERS = 0x1001


def _open(netns: str) -> int:
    with inside(netns):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", b"late", _TUN_WITHOUT_HEADERS))
        return device


async def _relay(one: int, other: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    for source, sink in ((one, other), (other, one)):
        loop.add_reader(source, partial(_take, loop, source, sink, seconds))
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await ended.wait()


def _take(loop: asyncio.AbstractEventLoop, source: int, sink: int, seconds: float) -> None:
    packet = os.read(source, _MTU_BYTES)
    loop.call_later(seconds, os.write, sink, packet)


if __name__ == "__main__":
    asyncio.run(_relay(_open(sys.argv[1]), _open(sys.argv[2]), float(sys.argv[3])))
