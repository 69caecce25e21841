"""The audit log is read on after the module was away, whole and without a line twice."""

import json
from urllib.parse import parse_qs, urlsplit

from messiahs.client import ModuleClient
from tests.unit.client.local_api_peer import Peer, StartPeer


def line(second: float, what: str = "bound") -> bytes:
    return json.dumps({"at": f"2026-01-31T12:00:{second:09.6f}Z", "what": what}).encode() + b"\n"


def read(peer: Peer, *pieces: list[bytes], since: str = "") -> list[tuple[str, str]]:
    peer.pieces = list(pieces)
    with ModuleClient(peer.socket_path) as module:
        return [(each["at"][17:19], each["what"]) for each in module.decisions(follow=True, since=since)]


def asked_since(peer: Peer) -> list[str]:
    return [parse_qs(urlsplit(path).query).get("since", [""])[0] for _, path, _ in peer.asked]


def test_what_was_read_comes_once_and_what_was_written_late_comes_after_an_interruption(start_peer: StartPeer) -> None:
    peer = start_peer()
    late = line(28.5, "loaded")
    first, second = [line(1), line(20), line(29), line(30)], [line(20), late, line(29), line(30), line(31)]
    shown = read(peer, first, second)
    assert shown == [(at, "bound") for at in ("01", "20", "29", "30")] + [("28", "loaded"), ("31", "bound")]
    assert asked_since(peer) == ["", "2026-01-31T12:00:20.000000Z"]


def test_different_decisions_of_one_instant_are_all_shown(start_peer: StartPeer) -> None:
    peer = start_peer()
    assert read(peer, [line(1), line(1, "ended")], [line(1), line(1, "ended"), line(1, "killed")]) == [
        ("01", "bound"),
        ("01", "ended"),
        ("01", "killed"),
    ]


def test_a_line_that_was_cut_is_read_anew(start_peer: StartPeer) -> None:
    assert read(start_peer(), [line(1), line(2)[:20]], [line(1), line(2)]) == [("01", "bound"), ("02", "bound")]


def test_nothing_earlier_than_the_wanted_time_is_asked_for(start_peer: StartPeer) -> None:
    peer = start_peer()
    read(peer, [line(31)], [line(31)], since="2026-01-31T12:00:30.000000Z")
    assert set(asked_since(peer)) == {"2026-01-31T12:00:30.000000Z"}
