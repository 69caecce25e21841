"""Root administers a module that another account runs: nothing of it becomes root's."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.live.shared_host import Host, shared_host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
SITE = """
version: 1
federation: site
defaults: {policy: site.policy}
systems:
  gate: {}
"""
CHANGED = f"{SITE}  desk: {{parent: gate}}\n"
STATE = ("--state", "/var/lib/messiahs")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with shared_host(tmp_path_factory.mktemp("host")) as made:
        made.path("/var/lib/site.policy").write_text("accept from users {}\n")
        made.path("/var/lib/site.yaml").write_text(SITE)
        assert made.shell("root", "install -d -o bob -g bob /var/lib/messiahs").returncode == 0
        try:
            done(made, "bob", "up", "/var/lib/site.yaml", "--detach", "--wait", "120", *STATE)
            yield made
        finally:
            done(made, "bob", "down", "/var/lib/site.yaml", *STATE)


def done(host: Host, account: str, *words: str) -> str:
    ended = host.run(account, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def not_of_bob(host: Host) -> str:
    return host.shell("root", "find /var/lib/messiahs ! -user bob").stdout


def test_root_signs_revokes_and_renews_for_a_module_of_another_account(host: Host) -> None:
    other = ("--federation", "site", "--state", "/var/lib/other")
    done(host, "root", "certificate", "request", "cs", *other, "--out", "/var/lib/cs.csr")
    done(host, "root", "certificate", "sign", "/var/lib/cs.csr", "--out", "/var/lib/cs.pem", *STATE)
    done(host, "root", "certificate", "revoke", "/var/lib/cs.pem", *STATE)
    done(host, "root", "certificate", "renew", *STATE)
    done(host, "root", "certificate", "request", "gate", "--out", "/var/lib/gate.csr", *STATE)
    assert not_of_bob(host) == ""
    done(host, "bob", "certificate", "sign", "/var/lib/gate.csr", "--out", "/home/bob/gate.pem", *STATE)


@pytest.mark.parametrize("state", ["/var/lib/empty", "/home/bob/none/yet"])
def test_a_key_that_root_makes_belongs_to_the_account_whose_state_it_is_and_the_command_says_so(
    host: Host, state: str
) -> None:
    assert host.shell("root", "install -d -o bob -g bob /var/lib/empty").returncode == 0
    words = ("certificate", "request", "lab", "--federation", "pact", "--state", state)
    said = done(host, "root", *words, "--out", "/var/lib/lab.csr")
    assert f"the key {state}/pact/lab/key.pem belongs to bob (uid " in said
    assert host.shell("root", f"find {state} ! -user bob").stdout == ""
    assert host.shell("root", "stat -c %U /var/lib/lab.csr").stdout == "root\n"
    said = json.loads(done(host, "bob", *words, "--out", "/home/bob/lab.csr", "--json"))
    assert said["new_key"] is False


def test_root_applies_a_topology_and_makes_a_backup_of_modules_of_another_account(host: Host) -> None:
    text = done(host, "bob", "submit", "--quiet", "--module", "gate", "--input", "/etc/passwd", "--", "cat", "passwd")
    host.path("/var/lib/site.yaml").write_text(CHANGED)
    assert "desk: started" in done(host, "root", "topology", "apply", "/var/lib/site.yaml", *STATE)
    done(host, "root", "backup", "--all", "--out", "/var/lib/site.backup", *STATE)
    assert not_of_bob(host) == ""
    assert (
        host.shell(
            "root", "find /var/tmp -maxdepth 1 -user root -name 'messiahs-*-0-*' -newer /var/lib/site.yaml"
        ).stdout
        == ""
    )
    assert text.strip() in done(host, "bob", "status", "--module", "gate", *STATE)


def test_others_are_told_why_they_see_no_module(host: Host) -> None:
    assert host.shell("root", "chmod 711 /var/lib/messiahs /var/lib/messiahs/site").returncode == 0
    for command in (("doctor",), ("module", "list")):
        assert "permission" in host.run("eve", *command, *STATE).stderr
