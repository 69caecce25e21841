"""Joining by hand: the documents of `join`, and a system that has lost its key."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from tests.live.joiners import Campus, campus, on
from tests.waiting import eventually

pytestmark = pytest.mark.live


@pytest.fixture
def asking_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start a federation whose administrator decides."""
    with campus(tmp_path) as made:
        yield made


def test_the_documents_of_join_name_tokens_and_requests(asking_campus: Campus) -> None:
    office = asking_campus.federation
    made = office.document("join", "token", "--name", "x*", "--expires", "2h")
    file = asking_campus.folder / "token"
    file.write_text(f"{made.pop('token')}\n")
    (listed,) = office.document("join", "list")["tokens"]
    assert made.pop("schema") is not None
    assert made == listed
    assert set(listed) == {"id", "role", "pattern", "made_at", "expires_at", "state", "used_by", "text"}
    assert [listed[each] for each in ("role", "pattern", "state", "used_by", "text")] == [
        "child",
        "x*",
        "unused",
        None,
        "",
    ]
    xinu = asking_campus.newcomer("xinu")
    xinu.joined(file, asking_campus.address)
    asking_campus.waits_for("xinu")
    found = office.document("join", "list")
    (asked,), (token,) = found["requests"], found["tokens"]
    assert (token["used_by"], token["state"]) == ("xinu", asked["state"])
    assert (asked["name"], asked["role"], asked["token"], asked["address"]) == ("xinu", "child", made["id"], "")
    assert (asked["machine"]["slots"], asked["machine"]["site"], asked["needs_certificate"]) == (1, "xinu", False)
    assert asked["certificate_request"].startswith("-----BEGIN CERTIFICATE REQUEST-----\n")
    asking_campus.decide("deny", "xinu", "--text", "not before May")
    assert xinu.ended() == 1
    found = office.document("join", "list")
    (token,) = found["tokens"]
    assert (found["requests"], token["state"], token["text"]) == ([], "denied", "not before May")


def test_a_token_that_cannot_be_meant_is_a_mistake_of_usage(asking_campus: Campus) -> None:
    for words, problem in (
        (("--expires", "0s"), "a token can be used for 1 s to 30 days, not for 0 s"),
        (("--expires", "31d"), "a token can be used for 1 s to 30 days"),
        (("--name", "Kid_*"), "no name is like `Kid_*`: names have a-z, 0-9, dots and hyphens"),
        (("--address", "cs"), "`cs` is no address: write HOST:PORT"),
    ):
        refused = asking_campus.federation.run("join", "token", *words)
        assert refused.returncode == 2
        assert problem in refused.stderr
    assert asking_campus.federation.document("join", "list")["tokens"] == []


def test_a_system_that_has_lost_its_key_joins_with_a_certificate_for_a_new_one(asking_campus: Campus) -> None:
    office, xinu = asking_campus.federation, asking_campus.newcomer("xinu")
    xinu.joined(asking_campus.token(), asking_campus.address)
    asking_campus.waits_for("xinu")
    asking_campus.decide("approve", "xinu")
    eventually(lambda: asking_campus.machines("up") == 2, lambda: xinu.told)
    before = (xinu.directory / "certificate.pem").read_bytes()
    xinu.end()
    remove_tasks(xinu.folder)
    shutil.rmtree(xinu.folder)
    removed = office.run("module", "remove", "xinu", "--now")
    assert removed.returncode == 0, removed.stderr

    xinu.joined(asking_campus.token(), asking_campus.address)
    asking_campus.waits_for("xinu")
    refused = office.run("join", "approve", "xinu")
    assert refused.returncode == 1
    assert "`join approve xinu --certificate FILE`" in refused.stderr
    request, certificate = asking_campus.folder / "xinu.csr", asking_campus.folder / "xinu.pem"
    request.write_text(office.run("join", "list", "--request", "xinu").stdout)
    refused = office.run("certificate", "sign", str(request), "--out", str(certificate))
    assert refused.returncode == 1
    assert "`xinu` has a certificate for another key" in refused.stderr
    signed = office.run("certificate", "sign", str(request), "--new-key", "--out", str(certificate))
    assert signed.returncode == 0, signed.stderr
    asking_campus.decide("approve", "xinu", "--certificate", str(certificate))
    eventually(lambda: asking_campus.machines("up") == 2, lambda: xinu.told)
    assert (xinu.directory / "certificate.pem").read_bytes() == certificate.read_bytes() != before
    done = office.run("run", *on("xinu"), "--", "echo", "back")
    assert done.stdout == "back\n", done.stderr


def test_a_removed_module_that_joined_with_a_token_is_told_to_get_another_one(asking_campus: Campus) -> None:
    xinu = asking_campus.newcomer("xinu")
    xinu.joined(asking_campus.token(), asking_campus.address)
    asking_campus.waits_for("xinu")
    asking_campus.decide("approve", "xinu")
    eventually(lambda: asking_campus.machines("up") == 2, lambda: xinu.told)
    removed = asking_campus.federation.run("module", "remove", "xinu")
    assert removed.returncode == 0, removed.stderr

    def notes() -> list[str]:
        with xinu.client() as client:
            return [str(each) for each in client.module()["notes"] if "has ended" in each]

    eventually(notes)
    (note,) = notes()
    assert note.startswith("the link with its parent cs has ended (")
    assert note.endswith("): `messiahs module parent add` with a new token of cs adds it again")
    told = xinu.run("doctor").stdout
    assert note in told
    assert "topology apply" not in told
