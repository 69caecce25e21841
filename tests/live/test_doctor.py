"""The doctor beside running modules: it sees ports and links, and on one side what is wrong with the other."""

import json
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
        kill(alpha)
        eventually(lambda: levels(beta)["link alpha"] == "FAIL")
        failed = next(line for line in beta.run("doctor").stdout.splitlines() if "FAIL link alpha" in line)
        assert "start the module there" in failed
        assert levels(alpha)["daemon"] == "FAIL"
