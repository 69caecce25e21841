"""C-autonomy: the module under test decides what it releases, what it sends, and whom it answers (MESSIAHS 4.2)."""

import asyncio
from typing import Any, Final

import pytest

from messiahs.daemon.storage.documents import vector_document
from messiahs.errors import ChannelError
from messiahs.wire.codec import status_vector_from_bytes
from tests.autonomy.scene import OPEN, Scene
from tests.autonomy.seat import seated
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.live

_SHOWN: Final = {"arch", "free_slots"}
_SHORTEST_WORD: Final = 4
"""Shorter names can be in the bytes of a message by chance."""
_REASON: Final = "incident 7"
_VECTORS: Final = 5


def test_its_vectors_have_what_its_policy_reveals_and_nothing_else(scene: Scene) -> None:
    scene.load(f'{OPEN} reveal to "{{seat}}" {{{{ only {", ".join(f"${name}" for name in sorted(_SHOWN))}; }}}}')
    hidden = _words_of(scene)
    assert hidden

    async def play() -> list[bytes]:
        async with seated(scene) as seat:
            return [await seat.vector() for _ in range(_VECTORS)]

    received = asyncio.run(play())
    documents = [vector_document(status_vector_from_bytes(each).vector) for each in received]
    names = {name for each in documents for one in each["classes"] for name in one["attributes"]}
    assert names == _SHOWN
    assert [word for word in hidden if word.encode() in b"".join(received)] == []


def _words_of(scene: Scene) -> set[str]:
    """Return the names and texts in the description of the own machine which the policy hides."""
    with scene.subject.client() as client:
        classes = client.vectors()["up"]["classes"]
    pairs = [pair for each in classes for pair in each["attributes"].items() if pair[0] not in _SHOWN]
    words = {name for name, _ in pairs} | {value for _, value in pairs if isinstance(value, str)}
    return {word for word in words if len(word) >= _SHORTEST_WORD and not any(word in name for name in _SHOWN)}


def test_its_vectors_are_those_that_its_administrator_can_preview(scene: Scene) -> None:
    with scene.subject.client() as client:
        client.load_policy(None)

    async def play() -> None:
        async with seated(scene) as seat:

            async def compared() -> tuple[list[list[object]], list[list[object]]]:
                sent = status_vector_from_bytes(await seat.vector())
                with scene.subject.client() as client:
                    shown = client.preview(seat.module.name)["now"]["vectors"]
                kinds = [each for each in shown if each["kind"] == sent.kind.name.lower()]
                return [_without_numbers(each) for each in kinds], [_without_numbers(vector_document(sent.vector))]

            for _ in range(_VECTORS):
                previewed, sent = await compared()
                if previewed == sent:
                    break
                # A machine may have come or gone between the two.
            assert previewed == sent

    asyncio.run(play())


def _without_numbers(vector: dict[str, Any]) -> list[object]:
    """Return what of a vector does not change from one instant to the next."""
    return [
        (each["count"], [(name, value if isinstance(value, str) else "") for name, value in each["attributes"].items()])
        for each in vector["classes"]
    ]


@pytest.mark.parametrize("reveals", ["everything", "nothing"])
def test_it_shows_no_machine_to_a_neighbor_to_which_its_policy_reveals_nothing(scene: Scene, reveals: str) -> None:
    scene.load(OPEN + (' reveal to "{seat}" nothing;' if reveals == "nothing" else ""))

    async def play() -> list[int]:
        async with seated(scene) as seat:
            return [status_vector_from_bytes(await seat.vector()).vector.machines for _ in range(_VECTORS)]

    machines = asyncio.run(play())
    assert (max(machines) == 0) == (reveals == "nothing"), machines


def test_whom_its_administrator_shuts_off_gets_no_answer_and_no_reason(scene: Scene) -> None:
    async def play() -> None:
        async with seated(scene) as seat:
            with scene.subject.client() as client:
                client.shut_off(seat.module.name, reason=_REASON)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await seat.module.has_ended.wait()
            told = [seat.module.received.get_nowait() for _ in range(seat.module.received.qsize())]
            assert _REASON not in str(told)
            address = seat.module.neighbor.address
            assert address is not None
            with pytest.raises(ChannelError, match="shut_off") as refused:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await (await seat.module.transport.dial(scene.name, address)).control.read()
            assert _REASON not in str(refused.value)
        await asyncio.to_thread(scene.users.serve)
        with scene.subject.client() as client:
            client.readmit(scene.seat.name)
        async with seated(scene) as seat:
            await seat.granted()

    asyncio.run(play())
