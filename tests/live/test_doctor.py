"""The doctor beside running modules: it sees ports and links, and on one side what is wrong with the other."""

import json
import signal
from pathlib import Path

from tests.live.linked_pair import kill, linked_pair
from tests.live.small_sites import Site
from tests.waiting import eventually


def levels(site: Site) -> dict[str, str]:
    """Return the level of each thing that the doctor looks at."""
    done = site.run("doctor", "--json")
    checks = {each["what"]: each["level"] for each in json.loads(done.stdout)["checks"]}
    assert done.returncode == ("FAIL" in checks.values())
    return checks


def test_modules_that_run_are_well_and_one_that_is_lost_is_missed_on_the_other_side(tmp_path: Path) -> None:
    with linked_pair(tmp_path) as (alpha, beta):
        for site, other in ((alpha, beta), (beta, alpha)):
            found = levels(site)
            assert {what: found[what] for what in ("daemon", "port", "certificate", "key", f"link {other.name}")} == {
                "daemon": "ok", "port": "ok", "certificate": "ok", "key": "ok", f"link {other.name}": "ok",
            }  # fmt: skip
        check_one_that_is_stopped(alpha)
        kill(alpha)
        eventually(lambda: levels(beta)["link alpha"] == "FAIL")
        failed = next(line for line in beta.run("doctor").stdout.splitlines() if "FAIL link alpha" in line)
        assert "start the module there" in failed
        assert levels(alpha)["daemon"] == "FAIL"


def check_one_that_is_stopped(site: Site) -> None:
    """Stop the module of a site for as long as the doctor and the list look at it."""
    assert site.process is not None
    site.process.send_signal(signal.SIGSTOP)
    try:
        number = site.process.pid
        text = f"its process {number} is stopped; `kill -CONT {number}` lets it go on"
        done = site.run("doctor")
        assert (done.returncode, f"FAIL daemon: the module `alpha` does not answer: {text}\n" in done.stdout) == (
            1,
            True,
        )
        for words in (("drain",), ("undrain",), ("leave", "beta"), ("remove", "beta")):
            assert site.run("module", *words).stderr == f"messiahs: the module `alpha` does not answer: {text}\n"
        (listed,) = site.document("module", "list")["modules"]
        assert (listed["pid"], listed["children"]) == (number, ["beta"])
        assert listed["notes"] == [f"the module `alpha` does not answer: {text}"]
    finally:
        site.process.send_signal(signal.SIGCONT)
