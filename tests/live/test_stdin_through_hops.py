"""Standard input of a task whose origin and executor are at two sites: it passes two hops, and outlives each of them.

`phys` submits, `lab` executes, and the bytes pass `uni` and `chem`.
"""

import os
import signal
import subprocess

import pytest

from tests.commands import Command
from tests.live.small_sites import Site, Sites, bound, described, on, started
from tests.live.test_stdin import RUN, copied
from tests.waiting import PATIENCE_SECONDS

__all__ = ["described"]


@pytest.fixture
def sites(described: Sites) -> Sites:
    """Start all four."""
    return started(described)


def environment_of(site: Site) -> dict[str, str]:
    return {**os.environ, "MESSIAHS_STATE": str(site.folder / "state"), "MESSIAHS_MODULE": site.name}


@pytest.mark.parametrize("name", ["uni", "chem"])
def test_a_hop_killed_in_the_middle_loses_and_repeats_nothing(sites: Sites, name: str) -> None:
    hop, phys = sites[name], sites["phys"]

    def kill() -> None:
        assert hop.process is not None
        hop.process.kill()
        hop.process.communicate()
        hop.start()

    copied(on("lab"), environment_of(phys), interrupt=kill)
    (task,) = phys.document("status")["tasks"]
    assert (task["state"], task["attempt"], task["executed_on"]) == ("finished", 1, "lab")
    assert any(entry["event"] == "route" for entry in task["history"])


def test_an_attempt_that_is_repeated_over_two_hops_reads_a_pipe_again(sites: Sites) -> None:
    phys = sites["phys"]
    script = "wc -c; [ $MESSIAHS_ATTEMPT -gt 1 ] || exec sleep 600"
    command, pipe = [*RUN, *on("lab"), "--", "sh", "-c", script], subprocess.PIPE
    with Command[bytes](command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment_of(phys)) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"content")
        run.stdin.close()
        assert run.stdout.readline() == b"7\n"
        (task,) = phys.document("status")["tasks"]
        assert phys.run("task", "revoke", task["id"]).returncode == 0
        out = run.stdout.read()
        assert (run.wait(PATIENCE_SECONDS), out) == (0, b"7\n")
    (task,) = phys.document("status")["tasks"]
    assert (task["attempt"], task["executed_on"]) == (2, "lab")


def test_an_exit_code_wins_over_a_missing_output_over_two_hops(sites: Sites) -> None:
    phys = sites["phys"]
    done = phys.run("run", *on("lab"), "--output", "gone", "--", "sh", "-c", "exit 9")
    assert done.returncode == 9
    assert "exit code 9; missing at the end: gone" in done.stderr


def test_a_hop_that_lets_no_more_bytes_pass_is_named_with_its_bound(described: Sites) -> None:
    bound(described, "chem", bounds="daily: 1MiB")
    phys = started(described)["phys"]
    command, pipe = [*RUN, *on("lab"), "--", "sh", "-c", "exec cat > /dev/null"], subprocess.PIPE
    zeros = ["head", "-c", "3000000", "/dev/zero"]
    with (
        Command[bytes](zeros, stdout=pipe) as producer,
        Command[bytes](
            command, stdin=producer.stdout, stdout=subprocess.DEVNULL, stderr=pipe, env=environment_of(phys)
        ) as run,
    ):
        assert producer.stdout is not None
        assert run.stderr is not None
        producer.stdout.close()
        line = run.stderr.readline()
        assert line.startswith(b"messiahs: standard input waits: chem: uni may move 1MiB in a day"), line
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=PATIENCE_SECONDS)
        assert run.returncode == 130
