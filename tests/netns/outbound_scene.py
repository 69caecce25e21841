"""Tasks with `network: outbound` on a host of a network, and what they reach; prints the answers as JSON.

Runs in the network namespace of the host, as `python -m tests.netns.outbound_scene FOLDER KIND WORLD ADDRESS`, where
KIND is that of the sandboxes, WORLD the namespace of another host and ADDRESS its address.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from messiahs.core.model.images import IMAGE_INPUT
from messiahs.core.model.task_files import InputFile
from messiahs.executor.linux.processes import kill
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.protocol.layout import TRASH
from tests.contract.executor_rig import OFFSET_NS, Rig, play_scene, root_of
from tests.contract.task_files import starter_files
from tests.netns.namespaces import run
from tests.oci_images import image_of_this_machine
from tests.waiting import eventually

PORT, LOCAL_PORT, TASK_PORT, BOUND_PORT = 7000, 7001, 7002, 7003
NAME_SERVER = ("127.0.0.53", 53)
NAME = "server.world.example"
_TASKS = 48
_TASK_ADDRESS = "10.0.2.100"
_PASSED_ON = ("127.0.0.1", "127.0.0.53", "10.0.2.2", "10.0.2.3")
"""Addresses that could lead to the loopback of the host."""
REACH = """
import socket, sys
def reach(family, kind, address):
    try:
        with socket.socket(family, kind) as link:
            link.settimeout(5)
            link.connect(address)
            link.send(b"?")
            return link.recv(100).decode()
    except OSError as error:
        return type(error).__name__
"""
_BY_TCP = "print(reach(socket.AF_INET, socket.SOCK_STREAM, (sys.argv[1], int(sys.argv[2]))))"
_BY_UDP = "print(reach(socket.AF_INET, socket.SOCK_DGRAM, (sys.argv[1], int(sys.argv[2]))))"
_BY_NAME = "print(reach(socket.AF_UNIX, socket.SOCK_STREAM, '\\0messiahs-test-' + sys.argv[1]))"
_BOUND = """
import struct
index = socket.if_nametoindex("tap0")
ways = {
    "by name": lambda s: s.setsockopt(socket.SOL_SOCKET, 25, b"tap0\\0"),
    "by index": lambda s: s.setsockopt(socket.SOL_SOCKET, 62, index),
    "for one cast": lambda s: s.setsockopt(socket.IPPROTO_IP, 50, struct.pack("!I", index)),
    "without route": lambda s: (ways["by name"](s), s.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)),
    "own address": lambda s: (ways["by name"](s), s.bind(("10.0.2.100", 0))),
}
def attempt(family, kind, bind, *to):
    with socket.socket(family, kind) as link:
        link.settimeout(0.5)
        try:
            bind(link)
            for address in to:
                link.connect(address)
                link.send(b"bound")
                answer = link.recv(100)
            print("reached", to, answer)
        except OSError:
            pass
outside, port = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
# What is bound to the device does reach the world.
attempt(socket.AF_INET, socket.SOCK_DGRAM, ways["by name"], outside)
attempt(socket.AF_INET, socket.SOCK_STREAM, ways["by index"], outside)
for address in sys.argv[4:]:
    for bind in ways.values():
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            attempt(socket.AF_INET, kind, bind, (address, port))
        # The answers to one that is known to slirp4netns come back.
        attempt(socket.AF_INET, socket.SOCK_DGRAM, bind, outside, (address, port))
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(socket.AF_INET6, kind, ways["by name"], ("::ffff:" + address, port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        chosen = (socket.IPPROTO_IP, 8, struct.pack("=i8x", index))
        try:
            link.sendmsg([b"packet"], [chosen], 0, (address, port))
        except OSError:
            pass
"""
_RAW = """
for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):
    try:
        socket.socket(family, kind, socket.IPPROTO_ICMP)
        print("can")
    except PermissionError:
        print("cannot")
"""
_SEEN = "import os; print(*sorted(os.listdir('/')), *open('/etc/resolv.conf').read().split())"
_MANY = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
links = []
try:
    while len(links) < 1500:
        links.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5))
except OSError:
    pass
print(len(links))
"""
_LISTEN = """
import socket
with socket.create_server(("0.0.0.0", int(__import__("sys").argv[1]))) as server:
    print("listens", flush=True)
    print("caught", server.accept()[1], flush=True)
"""
_SERVE = """
import asyncio, resource, sys
from tests.netns.outbound_scene import Echo, greeting
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
async def serve():
    await asyncio.start_server(greeting("world"), *sys.argv[1:])
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: Echo(), local_addr=tuple(sys.argv[1:]))
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(serve())
"""


class Echo(asyncio.DatagramProtocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override] # as documented
        """Keep the way back."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Send it back."""
        self._transport.sendto(data, addr)


class Heard(Echo):
    """Notes what arrives, and sends it back."""

    def __init__(self) -> None:
        self.count = 0

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Note and answer it."""
        self.count += 1
        super().datagram_received(data, addr)


class Names(Echo):
    """Answers every question about a name with one address."""

    def __init__(self, address: str) -> None:
        self._address = bytes(map(int, address.split(".")))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer with the address, or with nothing if another kind of record is asked for."""
        end = data.index(b"\0", 12) + 5
        is_known = data[end - 4 : end] == b"\0\x01\0\x01"
        answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + self._address if is_known else b""
        head = data[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if is_known else b"\0\0") + bytes(4)
        self._transport.sendto(head + data[12:end] + answer, addr)


def greeting(text: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return a server that answers the first byte of each connection with a word."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(text.encode())
        writer.close()

    return greet


def slirps(settings: StarterSettings) -> list[int]:
    """Return the processes of slirp4netns of the accounts of tasks."""
    first, last = settings.task_uids
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        except OSError:
            continue
        uids = {int(uid) for uid in fields["Uid"].split()}
        if fields["Name"] == "slirp4netns" and all(first <= uid <= last for uid in uids):
            found.append(int(status.parent.name))
    return found


class Scene:
    """The answers so far (mutable), and the tasks that ask."""

    def __init__(self, settings: StarterSettings, image: InputFile, world: str, address: str) -> None:
        self.settings, self.image, self.world, self.address = settings, image, world, address
        self.answers: dict[str, object] = {}
        self._number = 0

    async def act(self, rig: Rig) -> None:
        """Serve on this host and in the world, and let tasks try everything."""
        await asyncio.start_server(greeting("host"), "127.0.0.1", LOCAL_PORT)
        await asyncio.start_unix_server(greeting("host"), "\0messiahs-test-abstract")
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: Names(self.address), local_addr=NAME_SERVER)
        entering = ["nsenter", f"--net=/run/netns/{self.world}", sys.executable, "-c"]
        server = await asyncio.create_subprocess_exec(
            *entering, _SERVE, self.address, str(PORT), stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        await server.stdout.readline()
        try:
            await self._reaching_out(rig)
            await self._reaching_in(rig, entering)
            await self._bound(rig)
            await self._many_at_once(rig)
            await self._many_tasks(rig)
            self.answers["lost"], self.answers["next"] = await self._losing(rig)
            if self.settings.isolation == "sandbox":
                rig.image = self.image
                await self._in_image(rig)
                rig.image = None
            await self._behind_a_rule(rig)
            self.answers["left"] = await self._left_by_a_killed_starter(rig)
        finally:
            server.kill()
            await server.wait()

    async def _reaching_out(self, rig: Rig) -> None:
        self.answers["tcp"] = await self._task(rig, _BY_TCP, self.address, str(PORT))
        self.answers["udp"] = await self._task(rig, _BY_UDP, self.address, str(PORT))
        self.answers["by name"] = await self._task(rig, _BY_TCP, NAME, str(PORT))
        loopback = [await self._task(rig, _BY_TCP, to, str(LOCAL_PORT)) for to in _PASSED_ON]
        self.answers["loopback"] = loopback
        self.answers["abstract"] = await self._task(rig, _BY_NAME, "abstract")
        self.answers["raw"] = (await self._task(rig, _RAW)).split()
        # The servers do answer those who may reach them.
        self.answers["host itself"] = [
            run(sys.executable, "-c", REACH + _BY_UDP, self.address, str(PORT)).strip(),
            (await asyncio.to_thread(run, sys.executable, "-c", REACH + _BY_TCP, "127.0.0.1", str(LOCAL_PORT))).strip(),
            (await asyncio.to_thread(run, sys.executable, "-c", REACH + _BY_NAME, "abstract")).strip(),
        ]

    async def _bound(self, rig: Rig) -> None:
        heard, connected = Heard(), list[str]()

        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connected.append("by tcp")
            writer.close()

        loop, everywhere = asyncio.get_running_loop(), ("127.0.0.1", "127.9.9.9")
        for own in everywhere:
            await asyncio.start_server(greet, own, BOUND_PORT)
            await loop.create_datagram_endpoint(lambda: heard, local_addr=(own, BOUND_PORT))
        # The servers hear those who may reach them.
        for script in (_BY_TCP, _BY_UDP):
            await asyncio.to_thread(run, sys.executable, "-c", REACH + script, "127.0.0.1", str(BOUND_PORT))
        addresses = (*everywhere, *_PASSED_ON[2:], "0.0.0.0", "255.255.255.255")
        said = await self._task(rig, _BOUND, self.address, str(PORT), str(BOUND_PORT), *addresses)
        self.answers["bound"] = [said.count("reached"), heard.count, len(connected)]

    async def _many_at_once(self, rig: Rig) -> None:
        self.answers["at once"] = int(await self._task(rig, _MANY, self.address, str(PORT)))
        self.answers["afterwards"] = await self._task(rig, _BY_TCP, self.address, str(PORT))

    async def _many_tasks(self, rig: Rig) -> None:
        numbers = range(1_000, 1_000 + _TASKS)
        for number in numbers:
            rig.run(number, "true")
        self.answers["tasks"] = [(await rig.end_of(number)).exit_code for number in numbers]
        self.answers["losses"] = rig.losses.copy()

    async def _reaching_in(self, rig: Rig, entering: list[str]) -> None:
        self._number += 1
        listener = self._number
        rig.run(listener, "python3", "-c", _LISTEN, str(TASK_PORT))
        await rig.until(lambda: "listens" in rig.output(listener))
        (own,) = json.loads(run("ip", "-j", "-4", "addr", "show", "dev", "lo"))[0]["addr_info"][1:]
        answers = [
            await asyncio.to_thread(run, *entering, REACH + _BY_TCP, own["local"], str(TASK_PORT)),
            run(sys.executable, "-c", REACH + _BY_TCP, "127.0.0.1", str(TASK_PORT)),
            await self._task(rig, _BY_TCP, _TASK_ADDRESS, str(TASK_PORT)),
        ]
        self.answers["into a task"] = [answer.strip() for answer in answers]
        self.answers["listener"] = rig.output(listener).split()

    async def _losing(self, rig: Rig) -> tuple[list[str], str]:
        """Return the end of a task whose network ends, and what the next task reaches."""
        self._number += 1
        running = self._number
        rig.run(running, "sh", "-c", "echo runs; exec sleep 600")
        # It is started before its network is there.
        await rig.until(lambda: "runs" in rig.output(running))
        for process in slirps(self.settings):
            with suppress(ProcessLookupError):  # Those of earlier tasks may be about to end.
                os.kill(process, signal.SIGKILL)
        end = await rig.end_of(running)
        return [end.cause.value, end.text], await self._task(rig, _BY_TCP, self.address, str(PORT))

    async def _left_by_a_killed_starter(self, rig: Rig) -> list[int]:
        """Kill the starter while a task runs, and return the processes of networks that stay."""
        self._number += 1
        running = self._number
        rig.run(running, "sh", "-c", "echo runs; exec sleep 600")
        await rig.until(lambda: "runs" in rig.output(running))
        assert slirps(self.settings)
        starter = recorded_identity(self.settings.directory)
        assert starter is not None
        kill(starter)
        await rig.until(lambda: not slirps(self.settings))
        # Until there is another one, the next task would be sent to the starter that is gone.
        await rig.until(lambda: recorded_identity(self.settings.directory) not in {None, starter})
        left = slirps(self.settings)
        # The next starter removes what this one had.
        await self._task(rig, "")
        trash = root_of(self.settings) / TRASH
        await rig.until(lambda: not any(trash.iterdir()))
        return left

    async def _in_image(self, rig: Rig) -> None:
        found = {
            "root": await self._task(rig, _SEEN),
            "tcp": await self._task(rig, _BY_TCP, self.address, str(PORT)),
            "udp": await self._task(rig, _BY_UDP, self.address, str(PORT)),
            "by name": await self._task(rig, _BY_TCP, NAME, str(PORT)),
            "loopback": [await self._task(rig, _BY_TCP, to, str(LOCAL_PORT)) for to in _PASSED_ON],
            "abstract": await self._task(rig, _BY_NAME, "abstract"),
            "raw": (await self._task(rig, _RAW)).split(),
        }
        found["lost"], found["next"] = await self._losing(rig)
        self.answers["in an image"] = found

    async def _behind_a_rule(self, rig: Rig) -> None:
        first, last = self.settings.task_uids
        rule = f"meta skuid {first}-{last} ip daddr {self.address} reject"
        chain = f"type filter hook output priority 0;\n{rule}\n"
        run("nft", f"table inet site {{\nchain leaving {{\n{chain}}}\n}}")
        self.answers["ruled out"] = await self._task(rig, _BY_TCP, self.address, str(PORT))
        self.answers["host not ruled out"] = run(sys.executable, "-c", REACH + _BY_TCP, self.address, str(PORT)).strip()

    async def _task(self, rig: Rig, script: str, *arguments: str) -> str:
        self._number += 1
        rig.run(self._number, "python3", "-c", REACH + script, *arguments)
        await rig.end_of(self._number)
        return (rig.output(self._number) + rig.output(self._number, "stderr")).strip()


def main(folder: str, kind: str, *, world: str, address: str) -> None:
    """Play the scene, and print the answers."""
    with starter_files(Path(folder), kind=kind) as files:
        settings = replace(files.settings, network="outbound")
        scene = Scene(settings, files.add(IMAGE_INPUT, image_of_this_machine()), world, address)
        play_scene(scene.act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))
        eventually(lambda: not slirps(settings))
    sys.stdout.write(json.dumps(scene.answers))


if __name__ == "__main__":
    main(*sys.argv[1:3], world=sys.argv[3], address=sys.argv[4])
