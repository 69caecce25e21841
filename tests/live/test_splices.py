"""Two sites that nobody can dial, below a module of a third site: it passes their connections on, and reads nothing."""

import hashlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.third_sites import Three, describe, seen_by, start, three_sites
from tests.waiting import eventually

LARGE = b"a line of an input that nobody on the way may read\n" * 60_000


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Three]:
    with three_sites(tmp_path) as made:
        yield made


def test_the_relay_passes_inputs_outputs_logs_and_standard_input_on_and_holds_none_of_them(sites: Three) -> None:
    describe(sites, are_introduced=True)
    start(sites)
    alpha = sites["alpha"]
    (alpha.folder / "large").write_bytes(LARGE)
    words = ("--require", '$site eq "beta"', "--input", str(alpha.folder / "large"))
    task = alpha.run("submit", "--quiet", *words, "--output", "copy", "--", "cp", "large", "copy").stdout.strip()
    assert alpha.run("wait", task).returncode == 0, alpha.run("explain", task).stdout
    assert alpha.executed_on() == "beta"
    assert alpha.run("fetch", task, "--into", str(alpha.folder / "home")).returncode == 0
    copy = (alpha.folder / "home" / "copy").read_bytes()
    assert hashlib.sha256(copy).digest() == hashlib.sha256(LARGE).digest()
    echo = alpha.begin("run", "--require", '$site eq "beta"', "--", "sed", "s/^/back: /", stdin=subprocess.PIPE)
    out, err = echo.communicate("words that the user types\n")
    assert (out, echo.returncode) == ("back: words that the user types\n", 0), err
    logged = ("--require", '$site eq "beta"', "--", "sh", "-c", "echo a secret of the log; sleep 1; echo the end of it")
    followed = alpha.run("submit", "--quiet", *logged).stdout.strip()
    assert alpha.run("logs", "--follow", followed).stdout == "a secret of the log\nthe end of it\n"
    secrets = (b"nobody on the way may read", b"that the user types", b"secret of the log")
    assert seen_by(sites["pact"], *secrets) == []
    assert seen_by(sites["beta"], *secrets) != []
    # Idle connections report a second after their last bytes.
    eventually(lambda: min(spliced(sites, "alpha")) > len(LARGE))
    eventually(lambda: spliced(sites, "beta") == spliced(sites, "alpha")[::-1])


def test_a_relay_that_is_killed_in_the_middle_costs_no_bytes(sites: Three) -> None:
    describe(sites, are_introduced=True)
    start(sites)
    alpha, pact = sites["alpha"], sites["pact"]
    loop = "for each in $(seq 60); do echo $each; sleep 0.1; done; echo done"
    task = alpha.run("submit", "--quiet", "--require", '$site eq "beta"', "--", "sh", "-c", loop).stdout.strip()
    following = alpha.begin("logs", "--follow", task)
    assert following.stdout is not None
    assert following.stdout.readline() == "1\n"
    assert pact.process is not None
    pact.process.send_signal(signal.SIGKILL)
    pact.process.communicate()
    pact.start()
    assert alpha.run("wait", task).returncode == 0, alpha.run("explain", task).stdout
    following.communicate()
    again: subprocess.CompletedProcess[str] = alpha.run("logs", task)
    assert again.stdout == "".join(f"{each}\n" for each in range(1, 61)) + "done\n"


def test_sites_without_anchors_are_refused_with_the_names_of_the_settings(sites: Three) -> None:
    describe(sites, are_introduced=False, trusts_relays="alpha")
    start(sites)
    alpha = sites["alpha"]
    task = alpha.run("submit", "--quiet", "--require", '$site eq "beta"', "--", "true").stdout.strip()
    eventually(lambda: "trusts_relays" in alpha.run("explain", task).stdout, lambda: alpha.run("explain", task).stdout)
    assert "`introductions:`" in alpha.run("explain", task).stdout


def test_sites_that_trust_relays_exchange_bytes_without_anchors(sites: Three) -> None:
    describe(sites, are_introduced=False, trusts_relays="alpha beta")
    start(sites)
    alpha = sites["alpha"]
    task = alpha.run("submit", "--quiet", "--require", '$site eq "beta"', "--", "echo", "hello").stdout.strip()
    assert alpha.run("wait", task).returncode == 0, alpha.run("explain", task).stdout
    assert alpha.run("logs", task).stdout == "hello\n"


def spliced(sites: Three, neighbor: str) -> tuple[int, int]:
    """Return how many bytes the log of the third site counts from a neighbor and to it."""
    log = sites["pact"].document("audit", "log", "--neighbor", neighbor)["rows"]
    rows = [row for row in log if row["what"] == "spliced"]
    return sum(row["in_bytes"] for row in rows), sum(row["out_bytes"] for row in rows)
