"""Neighbors that ask for renewals and do not read the answers: they occupy neither memory nor the places of others."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

import pytest

from messiahs.channel import certificate_exchange
from messiahs.channel.certificate_exchange import RENEWALS_AT_ONCE, RENEWALS_OF_A_NEIGHBOR, CertificateExchange
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.tls import KeyAndCertificate, TlsMaterial, issue, make_root
from messiahs.core.model.ids import SystemId
from messiahs.wire.certificates import (
    CertificateMessage,
    RenewAnswer,
    RenewRequest,
    certificate_message_from_bytes,
    certificate_message_to_bytes,
)
from tests.waiting import until

REQUESTS = 100


class Neighbor:
    """The stream with a neighbor that asks many times, and reads answers only if it listens (mutable)."""

    def __init__(self, requests: int, *, listens: bool) -> None:
        self.read_from, self.answers = 0, list[CertificateMessage | None]()
        self._requests, self._listens = requests, listens

    async def read(self) -> bytes | None:
        """Return the next request; nothing after the last one."""
        if self.read_from >= self._requests:
            await asyncio.Event().wait()
        self.read_from += 1
        return certificate_message_to_bytes(
            RenewRequest(number=self.read_from, certificate_request=b"", certificate=b"")
        )

    async def write(self, content: bytes) -> None:
        """Take an answer, or wait for ever."""
        if not self._listens:
            await asyncio.Event().wait()
        self.answers.append(certificate_message_from_bytes(content))


class Steward:
    """Signs when it may (mutable)."""

    def __init__(self) -> None:
        self.may_sign, self.asked = asyncio.Event(), 0

    async def take_revocations(self, pem: bytes) -> int:
        """Take nothing."""
        return len(pem)

    async def renewed(self, request: RenewRequest) -> bytes:
        """Return the number of the request."""
        self.asked += 1
        await self.may_sign.wait()
        return str(request.number).encode()


def material() -> TlsMaterial:
    root: KeyAndCertificate = make_root("campus")
    made = issue(root, federation="campus", name="cs")
    return TlsMaterial(
        own=OwnCertificate.read(made.certificate, Path("certificate.pem")),
        certificate=made.certificate,
        key=made.key,
        trust=root.certificate,
        trust_file=Path("root.pem"),
    )


def play(scene: Callable[[CertificateExchange, Steward], Coroutine[object, object, None]]) -> None:
    async def run() -> None:
        steward = Steward()
        exchange = CertificateExchange(TlsInForce(material()), steward)
        await scene(exchange, steward)
        await exchange.stop()

    asyncio.run(run())


def test_a_neighbor_that_does_not_read_is_not_read_any_more_and_loses_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certificate_exchange, "SEND_SECONDS", 0.1)

    async def scene(exchange: CertificateExchange, steward: Steward) -> None:
        deaf = Neighbor(REQUESTS, listens=False)
        steward.may_sign.set()
        await exchange.run(SystemId("deaf"), deaf)
        assert deaf.read_from == RENEWALS_OF_A_NEIGHBOR + 1
        await until(lambda: not exchange._answering, "the places that it occupied")
        heard = Neighbor(1, listens=True)
        exchange.begin(SystemId("deaf"), heard)
        await until(lambda: len(heard.answers) == 1, "the answer")
        assert heard.answers == [RenewAnswer(number=1, certificate=b"1")]

    play(scene)


def test_no_neighbor_occupies_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_exchange, "SEND_SECONDS", 600)

    async def scene(exchange: CertificateExchange, steward: Steward) -> None:
        greedy, other = Neighbor(REQUESTS, listens=True), Neighbor(1, listens=True)
        exchange.begin(SystemId("greedy"), greedy)
        await until(lambda: greedy.read_from == REQUESTS, "all requests")
        await until(lambda: len(greedy.answers) == REQUESTS - RENEWALS_OF_A_NEIGHBOR, "the refusals")
        assert {each.text for each in greedy.answers if isinstance(each, RenewAnswer)} == {
            "too many renewals at once: ask again later"
        }
        exchange.begin(SystemId("other"), other)
        await until(lambda: steward.asked == RENEWALS_OF_A_NEIGHBOR + 1, "the request of the other neighbor")
        steward.may_sign.set()
        await until(lambda: len(other.answers) == 1, "the answer")
        assert other.answers == [RenewAnswer(number=1, certificate=b"1")]

    play(scene)


def has_read(streams: list[Neighbor], count: int) -> bool:
    return sum(each.read_from for each in streams) == count


def test_a_neighbor_that_opens_streams_again_and_again_has_one_and_no_more_places() -> None:
    async def scene(exchange: CertificateExchange, steward: Steward) -> None:
        streams = [Neighbor(1, listens=True) for _ in range(10)]
        runs = list[asyncio.Task[None]]()
        for count, each in enumerate(streams, start=1):
            runs.append(asyncio.create_task(exchange.run(SystemId("greedy"), each)))
            await until(partial(has_read, streams, count), "its request")
        await until(lambda: [run.done() for run in runs] == [True] * 9 + [False], "the end of all but the last stream")
        await until(lambda: len(streams[-1].answers) == 1, "the refusal")
        assert steward.asked == RENEWALS_OF_A_NEIGHBOR
        steward.may_sign.set()
        await until(lambda: len(streams[0].answers) == 1, "the place is free again")
        last = Neighbor(1, listens=True)
        exchange.begin(SystemId("greedy"), last)
        await until(lambda: len(last.answers) == 1, "the answer")
        assert last.answers == [RenewAnswer(number=1, certificate=b"1")]
        await asyncio.gather(*runs)

    play(scene)


def test_neighbors_that_read_nothing_occupy_no_place_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_exchange, "SEND_SECONDS", 600)

    async def scene(exchange: CertificateExchange, steward: Steward) -> None:
        steward.may_sign.set()
        deaf = [Neighbor(1, listens=False) for _ in range(RENEWALS_AT_ONCE)]
        for number, each in enumerate(deaf):
            exchange.begin(SystemId(f"deaf{number}"), each)
        await until(lambda: steward.asked == len(deaf), "all requests")
        other = Neighbor(1, listens=True)
        exchange.begin(SystemId("other"), other)
        await until(lambda: len(other.answers) == 1, "the answer")
        assert other.answers == [RenewAnswer(number=1, certificate=b"1")]

    play(scene)
