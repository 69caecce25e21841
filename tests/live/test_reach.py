"""The doctor asks neighbors to dial its module, and compares their clocks with the one of the module."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.settings import load_settings
from tests.live.lab import Lab, short_lease_lab
from tests.live.linked_pair import linked_pair
from tests.live.small_sites import Site
from tests.ports import free_port
from tests.waiting import eventually

HOUR_SECONDS, DAY_SECONDS = 3_600, 86_400
_SYSTEMS = """
  home: {}
  near: {parent: home}
  hidden: {parent: home, reach: outbound}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Share a module, another one below it, and one that nobody dials."""
    with short_lease_lab(tmp_path_factory.mktemp("reach"), _SYSTEMS, seconds=60) as made:
        yield made


def findings(document: str) -> dict[str, tuple[str, str]]:
    """Return the level and the text of each thing that the doctor looks at."""
    return {each["what"]: (each["level"], each["text"]) for each in json.loads(document)["checks"]}


def found(lab: Lab, module: str) -> dict[str, tuple[str, str]]:
    return findings(lab.federation.run("doctor", "--json", "--module", module).stdout)


def test_neighbors_say_where_they_reach_a_module_and_nobody_dials_one_that_only_dials(short: Lab) -> None:
    eventually(lambda: {"clock of near", "clock of hidden"} <= found(short, "home").keys())
    home = load_settings(short.federation.folder("home") / "settings.json").listen
    for neighbor in ("near", "hidden"):
        assert found(short, "home")[f"from {neighbor}"] == ("ok", f"it reaches this module at {home}")
        assert found(short, neighbor)["clock of home"][0] == "ok"
    near = load_settings(short.federation.folder("near") / "settings.json").listen
    assert found(short, "near")["from home"] == ("ok", f"it reaches this module at {near}")
    assert found(short, "hidden")["from home"] == ("ok", "nobody dials this module (`reach: outbound`)")


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [(HOUR_SECONDS, "warn", "s ahead of"), (-HOUR_SECONDS, "warn", "s behind"), (3 * DAY_SECONDS, "FAIL", "s ahead")],
)
def test_a_clock_that_is_wrong_is_told_with_what_breaks(short: Lab, seconds: int, level: str, words: str) -> None:
    short.set_wall("near", seconds)
    try:
        # A neighbor is asked again only after some seconds.
        eventually(lambda: found(short, "home").get("clock of near", ("",))[0] == level and words in _clock_text(short))
        assert "timedatectl" in _clock_text(short)
        assert "certificates" in _clock_text(short)
    finally:
        short.set_wall("near", 0)
    eventually(lambda: found(short, "home")["clock of near"][0] == "ok")


def _clock_text(lab: Lab) -> str:
    return found(lab, "home")["clock of near"][1]


def test_only_the_owner_may_have_neighbors_dial(short: Lab) -> None:
    # Any account may use the module, once it can enter this folder.
    short.federation.folder("home").parent.chmod(0o711)
    assert short.federation.status_code_for(65_533, "POST", path="/v1/reach", module="home") == 403


def doctor(site: Site) -> dict[str, tuple[str, str]]:
    return findings(site.run("doctor", "--json").stdout)


def test_an_address_that_is_wrong_in_the_file_of_the_other_site_fails_with_what_to_correct(tmp_path: Path) -> None:
    with linked_pair(tmp_path) as (alpha, beta):
        eventually(lambda: doctor(beta).get("from alpha", ("",))[0] == "ok")
        right = load_settings(beta.folder / "state" / "pact" / "beta" / "settings.json").listen
        file = alpha.folder / "site.yaml"
        wrong = f"127.0.0.1:{free_port()}"
        file.write_text(file.read_text().replace(f"port: {right.rpartition(':')[2]}", f"port: {wrong[10:]}"))
        assert alpha.run("topology", "apply", str(file)).returncode == 0
        eventually(lambda: doctor(beta)["from alpha"][0] == "FAIL")
        text = doctor(beta)["from alpha"][1]
        assert f"the connection to {wrong} is refused" in text
        assert f"the topology of alpha says {wrong} for `beta`" in text
        assert beta.run("doctor").returncode == 1
