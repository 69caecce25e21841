"""What the doctor says of the clock and the unit of a module, on hosts with and without systemd."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.live.shared_host import Host, shared_host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace of its own")
_SITE = "version: 1\nfederation: site\nsystems:\n  gate: {}\n"
_STATE = ("--state", "/var/lib/messiahs")
_SYSTEMCTL = """#!/bin/sh
[ "$*" = "$(cat /var/lib/bin/enabled)" ] && echo enabled || echo disabled
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with shared_host(tmp_path_factory.mktemp("host")) as made:
        made.path("/var/lib/site.yaml").write_text(_SITE)
        made.path("/var/lib/bin").mkdir()
        made.path("/var/lib/bin/systemctl").write_text(_SYSTEMCTL)
        made.path("/var/lib/bin/systemctl").chmod(0o755)
        for words in (("up", "/var/lib/site.yaml", "--detach", "--wait", "120"), ("down", "/var/lib/site.yaml")):
            done = made.run("root", *words, *_STATE)
            assert done.returncode == 0, done.stderr
        yield made


def found(host: Host, what: str) -> tuple[str, str]:
    path = f"/var/lib/bin:{os.environ['PATH']}"
    done = host.run("root", "doctor", "--module", "gate", "--json", *_STATE, PATH=path)
    ((level, text),) = [(one["level"], one["text"]) for one in json.loads(done.stdout)["checks"] if one["what"] == what]
    return level, text


def test_without_systemd_nothing_is_said_against_the_start_at_boot(host: Host) -> None:
    said = found(host, "unit")
    assert said == ("ok", "systemd does not run here: whatever starts this module at boot is not known")


@pytest.mark.parametrize("scope", ["", "--user "])
def test_with_systemd_a_unit_that_is_not_enabled_is_a_warning_with_the_commands(host: Host, scope: str) -> None:
    unit = "messiahs-gate.service"
    host.path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
    host.path("/var/lib/bin/enabled").write_text("")
    level, text = found(host, "unit")
    assert (level, text.startswith(f"{unit} is not enabled")) == ("warn", True)
    assert text.endswith(f"`messiahs topology bundle` makes it, and `systemctl enable --now {unit}` starts it")
    host.path("/var/lib/bin/enabled").write_text(f"{scope}is-enabled {unit}")
    assert found(host, "unit") == ("ok", f"{unit} is enabled")


def test_with_systemd_a_clock_that_its_own_service_does_not_keep_is_named(host: Host) -> None:
    host.path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
    level, text = found(host, "clock")
    assert (level, text.partition("; ")[2]) == (
        "ok",
        "systemd-timesyncd does not keep it, so make sure that another service does",
    )
    host.path("/run/systemd/timesync").mkdir()
    host.path("/run/systemd/timesync/synchronized").touch()
    assert ";" not in found(host, "clock")[1]
