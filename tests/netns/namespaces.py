"""Network namespaces and the cables between them, for the networks of this folder. Needs root, `ip`, `tc` and `nft`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.live.conftest import ROOT


@contextmanager
def namespaces(names: Sequence[str]) -> Iterator[None]:
    """Make network namespaces for the block; a test that cannot is skipped."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if lacking := [name for name in ("ip", "tc", "nft") if shutil.which(name) is None]:
        pytest.skip(f"there is no {' and no '.join(lacking)} here")
    # A kernel without them says so at the first one.
    first = subprocess.run(["ip", "netns", "add", names[0]], capture_output=True, text=True, check=False)
    if first.returncode:
        pytest.skip(f"network namespaces cannot be made here: {first.stderr.strip()}")
    try:
        batch(f"netns add {name}" for name in names[1:])
        batch(command for name in names for command in inside(name, "link set lo up"))
        yield
    finally:
        batch(f"netns del {name}" for name in names)


def cable(one: tuple[str, str], other: tuple[str, str]) -> Iterator[str]:
    """Connect two devices, each in its namespace."""
    (netns, device), (peer_netns, peer) = one, other
    yield f"link add {device} netns {netns} type veth peer name {peer} netns {peer_netns}"
    yield from inside(netns, f"link set dev {device} up")
    yield from inside(peer_netns, f"link set dev {peer} up")


@contextmanager
def late_link(one: str, other: str, *, seconds: float) -> Iterator[None]:
    """Connect two namespaces for the block by devices `late`, between which packets take so long."""
    command = [sys.executable, "-m", "tests.netns.delay", one, other, str(seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == "ready\n"
        batch(command for netns in (one, other) for command in inside(netns, "link set late up"))
        try:
            yield
        finally:
            relay.communicate()


def inside(netns: str, *commands: str) -> Iterator[str]:
    """Yield commands of `ip` for a namespace."""
    yield from (f"-n {netns} {command}" for command in commands)


def batch(commands: Iterable[str]) -> None:
    """Run commands of `ip`."""
    for command in commands:
        run("ip", *command.split())


def nft(netns: str, *words: str) -> str:
    """Run a command of `nft` in a namespace, and return what it prints."""
    return run("nsenter", f"--net=/run/netns/{netns}", "nft", *words)


def write(netns: str, setting: str, *, value: int) -> None:
    """Set a value below /proc/sys in a namespace."""
    run("nsenter", f"--net=/run/netns/{netns}", "sh", "-c", f"echo {value} > /proc/sys/{setting}")


def run(*command: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
