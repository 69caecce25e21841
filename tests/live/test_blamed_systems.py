"""`messiahs explain` and `plan` name the system that refused, two hops away at another site, and what would help."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.live.small_sites import Site, Sites, described, on, started
from tests.waiting import eventually

__all__ = ["described"]

POLICY = """
policy "inner" version 1;
accept from any { require $est_time default 0 < 1200 else "only short tasks here"; }
accept from users { }
"""
WAYS = [("phys", "lab"), ("lab", "phys")]
HELPS = "it would get a place if"


@pytest.fixture
def strict(described: Sites) -> Sites:
    """Let the two machines at the ends take short tasks of others alone; only that of `lab` has two slots."""
    for name in ("phys", "lab"):
        file = described[name].folder / "site.yaml"
        (file.parent / "inner.policy").write_text(POLICY)
        text = file.read_text().replace(f"  {name}: {{", f"  {name}: {{policy: inner.policy, ")
        file.write_text(text.replace("slots: 1, attributes: {site: lab}", "slots: 2, attributes: {site: lab}"))
    return described


@contextmanager
def waiting(origin: Site, *words: str) -> Iterator[Callable[[], list[str]]]:
    """Let a task wait, and yield a function that returns the lines on why it does."""
    task = origin.run("submit", *words, "--", "true").stdout.strip()
    yield lambda: [line.strip() for line in origin.run("explain", task).stdout.splitlines()]
    assert origin.run("cancel", task).returncode == 0


def helps(lines: list[str]) -> list[str]:
    """Return what would have to change at other systems, of the lines of a plan or an explanation."""
    known = lines[lines.index(HELPS) + 1 :] if HELPS in lines else []
    return [line for line in known if line.endswith((" ended", " it again", " let it in")) or " became " in line]


def told(origin: Site, *words: str, line: str) -> list[str]:
    """Return the lines of an explanation once they have one on what would help, which a plan then has, too."""
    with waiting(origin, *words) as explain:
        eventually(lambda: helps(explain()) == [line], explain)
        assert helps([each.strip() for each in origin.run("plan", *words, "--", "true").stdout.splitlines()]) == [line]
        return explain()


def away(site: Site) -> None:
    """Announce a maintenance that begins soon, so that tasks of ten minutes would end too late."""
    soon = (datetime.now(UTC).astimezone() + timedelta(minutes=9)).strftime("%Y-%m-%dT%H:%M")
    assert site.run("module", "drain", "--module", site.name, "--from", soon).returncode == 0


@pytest.mark.parametrize(("here", "there"), WAYS, ids=map("-".join, WAYS))
def test_who_is_away_or_does_not_lend_or_refuses_is_named_and_nobody_on_the_way(
    strict: Sites, here: str, there: str
) -> None:
    sites = started(strict)
    origin, other, own = sites[here], sites[there], f'{here}: own machine does not meet $site eq "{there}"'
    words = (*on(there), "--time", "10min")
    away(other)
    lines = told(origin, *words, line=f"the announced maintenance of {there} ended")
    assert lines[1] == own
    assert lines[4].startswith(f"{there}: is drained, or will be before such a task ends: this machine is away")
    run = origin.begin("run", *words, "--", "true")
    assert run.stderr is not None
    report = [run.stderr.readline().strip() for _ in range(5)]
    assert report[1:4] == lines[1:4], report
    run.terminate()
    run.communicate()
    assert other.run("module", "undrain", "--module", there).returncode == 0
    assert other.run("lend", "off", "--module", there).returncode == 0
    lines = told(origin, *words, line=f"the owner of {there} lent it again")
    assert lines[1] == own
    assert other.run("lend", "policy", "--module", there).returncode == 0
    lines = told(origin, *on(there), "--time", "1h", line=f"the policy of {there} let it in")
    assert lines[1] == own


def test_behind_a_border_its_name_stands_for_who_refused(strict: Sites) -> None:
    for name in ("uni", "chem"):
        file = strict[name].folder / "site.yaml"
        file.write_text(file.read_text().replace("  chem: {", "  chem: {reach: proxy, "))
    sites = started(strict)
    origin, other, words = sites["phys"], sites["lab"], ("--cpus", "2", "--time", "10min")
    away(other)
    lines = told(origin, *words, line="the drain of a system behind chem ended")
    assert not any("lab" in line for line in lines), lines
    assert other.run("module", "undrain", "--module", "lab").returncode == 0
    lines = told(origin, "--cpus", "2", "--time", "1h", line="the policy of chem let it in")
    assert not any("lab" in line for line in lines), lines
    assert told(other, *on("phys"), "--time", "1h", line="the policy of phys let it in")
