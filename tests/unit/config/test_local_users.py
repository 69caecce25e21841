"""Who may use a module, as its topology says."""

from pathlib import Path

import pytest

from messiahs.config.local_users import group_in, is_users, users_for
from messiahs.config.topology.neighbors import TlsPaths, module_settings
from messiahs.config.topology.reading import read_topology
from messiahs.errors import TopologyError

NOWHERE = Path("/")


def users_of(topology: str, name: str) -> str:
    """Return the users in the settings that a module gets from a topology."""
    tls = TlsPaths(certificate_file=NOWHERE, key_file=NOWHERE, trust_file=NOWHERE)
    read = read_topology(f"version: 1\nfederation: f\n{topology}", "f.yaml")
    addresses = {str(each.name): "127.0.0.1:1" for each in read.systems}
    return module_settings(read, name, addresses=addresses, state_directory=NOWHERE, tls=tls).users


@pytest.mark.parametrize("text", ["everyone", "owner", "group:hpc", "group:domain.users", "group:machine$"])
def test_three_forms_name_users(text: str) -> None:
    assert is_users(text)


@pytest.mark.parametrize("text", ["", "all", "group:", "group: hpc", "group:-x", "group:a b", "hpc", "group:\u00e9"])
def test_other_texts_do_not(text: str) -> None:
    assert not is_users(text)


def test_a_group_is_read_from_its_form_alone() -> None:
    assert (group_in("group:hpc"), group_in("everyone"), group_in("owner")) == ("hpc", None, None)


@pytest.mark.parametrize(("uid", "users"), [(0, "everyone"), (999, "everyone"), (1000, "owner"), (65534, "owner")])
def test_root_and_services_serve_everyone_and_a_person_serves_themselves(uid: int, users: str) -> None:
    assert users_for("", uid) == users
    assert users_for("group:hpc", uid) == "group:hpc"


def test_a_system_overrides_the_default_of_its_file() -> None:
    topology = "defaults: {users: 'group:hpc'}\nsystems:\n  top: {}\n  low: {parent: top, users: owner}\n"
    assert (users_of(topology, "top"), users_of(topology, "low")) == ("group:hpc", "owner")
    assert users_of("systems:\n  top: {}\n", "top") == ""


def test_a_wrong_value_is_a_problem_with_its_place() -> None:
    with pytest.raises(TopologyError) as problem:
        users_of("systems:\n  top: {users: all}\n", "top")
    text = "f.yaml:4:16: users: `everyone`, `owner` (its own account alone), or `group:NAME`, not `all`"
    assert text in str(problem.value)
