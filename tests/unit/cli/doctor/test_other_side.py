"""Each answer of a neighbor is one line: what happened, and what to do on which side."""

from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.cli.doctor.findings import Finding, Level, Patient
from messiahs.cli.doctor.network import check_links
from messiahs.cli.doctor.other_side import check_clocks, check_reach
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace
from messiahs.config.settings import ModuleSettings, NeighborSettings
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.wire.reach import ReachResult

ADDRESS = "xinu.example.org:7101"


def patient(*answers: Document, listen: str = "0.0.0.0:7101", unasked: str = "") -> Patient:
    settings = ModuleSettings(
        federation="campus",
        name="xinu",
        state_directory=Path("/state/campus"),
        listen=listen,
        certificate_file=Path("/state/certificate.pem"),
        key_file=Path("/state/key.pem"),
        trust_file=Path("/state/root.pem"),
    )
    place = ModulePlace(federation="campus", module="xinu", state_directory=Path("/state"))
    return Patient(
        place=place, settings=settings, pid=1, document={}, neighbors=[], reach=list(answers), unasked=unasked
    )


def answer(result: str, *, name: str = "cs", text: str = "", ahead_ns: int | None = 0) -> Document:
    address = "" if result in ("no_address", "not_now", "unknown", "no_answer") else ADDRESS
    return {"name": name, "result": result, "address": address, "text": text, "clock_ahead_ns": ahead_ns}


def link(name: str = "cs", *, state: str = "down", text: str = "", is_leaving: bool = False) -> Document:
    leaving: Document | None = {"since": None, "reason": "", "left": {}} if is_leaving else None
    return {"name": name, "state": state, "text": text, "dialed_at": None, "leaving": leaving}


@pytest.mark.parametrize(
    ("given", "level", "words"),
    [
        ([], Level.WARN, "If the file of cs lists this module, `messiahs neighbor on cs` brings it back"),
        (
            [link(text="its administrator has shut this module off (shut_off)")],
            Level.FAIL,
            "ask the administrator there; `messiahs neighbor on` there readmits this module",
        ),
        (
            [link(text="permission_denied: xinu is no neighbor of cs")],
            Level.FAIL,
            "the file in force there does not list this module, or its administrator removed it",
        ),
        (
            [link(is_leaving=True)],
            Level.WARN,
            "removed by an administrator, here or there: it ends when nothing is left",
        ),
        (
            [link(text="refused: its certificate was revoked, or")],
            Level.FAIL,
            "`messiahs certificate request --new-key`",
        ),
        ([link(text="it does not answer")], Level.FAIL, "firewalls"),
    ],
)
def test_a_link_that_an_administrator_has_ended_is_no_trouble_of_the_network(
    given: list[Document], level: Level, words: str
) -> None:
    seen = patient()
    parent = NeighborSettings(
        neighbor=Neighbor(system=SystemId("cs"), is_parent=True, is_primary_parent=True), address=None
    )
    settings = replace(seen.settings, neighbors=(parent,))
    seen = replace(seen, settings=settings, neighbors=given, document={"release": "0", "notes": []})
    _, finding = check_links(seen)
    assert (finding.what, finding.level, words in finding.text) == ("link cs", level, True), finding.text


def test_a_link_that_was_ended_here_is_no_trouble() -> None:
    seen = patient()
    parent = NeighborSettings(neighbor=Neighbor(system=SystemId("cs"), is_sibling=True), address=None)
    gone = {"name": "cs", "since": None, "by": "people", "reason": "ee is the primary parent of xinu now"}
    settings = replace(seen.settings, neighbors=(parent,))
    seen = replace(seen, settings=settings, removed=[gone], document={"release": "0", "notes": []})
    _, finding = check_links(seen)
    assert (finding.what, finding.level) == ("link cs", Level.OK)
    assert finding.text.startswith("ended by an administrator here (ee is the primary parent of xinu now); if that is")


@pytest.mark.parametrize(
    ("given", "level", "words"),
    [
        (answer("answered"), Level.OK, f"it reaches this module at {ADDRESS}"),
        (answer("silent"), Level.FAIL, "let the firewall of this side admit TCP port 7101"),
        (answer("refused"), Level.FAIL, "let the firewall of this side admit port 7101"),
        (answer("unresolved"), Level.FAIL, f"does not resolve there: correct it, as the topology of cs says {ADDRESS}"),
        (answer("other"), Level.FAIL, "another system answers"),
        (answer("other", text="signed by no root"), Level.FAIL, "(signed by no root)"),
        (answer("failed", text="No route to host"), Level.FAIL, "No route to host: check the way there"),
        (answer("no_address"), Level.OK, "it has no `host` and `port` for `xinu`"),
        (answer("not_now"), Level.OK, "ask again in 15 s"),
        (answer("unknown", text="its release is old", ahead_ns=None), Level.OK, "not asked: its release is old"),
        (answer("no_answer", text="no answer within 15 s", ahead_ns=None), Level.WARN, "see its log"),
    ],
)
def test_an_answer_is_one_line(given: Document, level: Level, words: str) -> None:
    (found,) = check_reach(patient(given))
    assert (found.what, found.level) == ("from cs", level)
    assert words in found.text


def test_every_result_has_a_line() -> None:
    assert len(list(check_reach(patient(*map(answer, ReachResult))))) == len(ReachResult)


def test_if_others_reach_the_module_the_firewall_is_that_of_the_neighbor() -> None:
    _, found = check_reach(patient(answer("answered", name="nyneve"), answer("silent")))
    assert "where nyneve reaches this module: let the firewall of cs admit connections out" in found.text


def test_a_module_that_nobody_dials_is_not_reached_and_that_is_right() -> None:
    (found,) = check_reach(patient(answer("no_address"), listen=""))
    assert (found.level, "outbound" in found.text) == (Level.OK, True)


def test_neighbors_that_were_not_asked_are_a_warning() -> None:
    (found,) = check_reach(patient(unasked="only root may"))
    assert (found.level, "only root may" in found.text) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        (0, Level.OK, "0.0 s"),
        (29, Level.OK, "29.0 s ahead of"),
        (30, Level.WARN, "30.0 s ahead of"),
        (-86_399, Level.WARN, "86399.0 s behind"),
        (-86_400, Level.FAIL, "not valid for the other yet"),
    ],
)
def test_a_clock_is_compared(seconds: int, level: Level, words: str) -> None:
    (found,) = check_clocks(patient(answer("answered", ahead_ns=seconds * SECOND)))
    assert (found.what, found.level, words in found.text) == ("clock of cs", level, True)
    assert ("timedatectl" in found.text) is (level is not Level.OK)


def test_a_neighbor_that_told_no_clock_has_no_line() -> None:
    none: list[Finding] = list(check_clocks(patient(answer("unknown", ahead_ns=None))))
    assert none == []
