"""Ids in the place of lists of ids, and lists in the place of ids."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from messiahs.client.asynchronous import AsyncClient
from messiahs.client.tasks import Client


@pytest.mark.parametrize("given", [["left.1"], 5, ("left.1", "left.2")])
@pytest.mark.parametrize(
    "ask",
    [
        Client.wait,
        Client.status,
        Client.cancel,
        Client.fetch,
        Client.retry,
        Client.explain,
        lambda client, given: list(client.logs(given)),
        lambda client, given: list(client.as_completed([given])),
    ],
)
def test_whatever_is_no_id_is_named(ask: Callable[[Client, Any], object], given: object) -> None:
    with Client() as client, pytest.raises(TypeError, match=r"an id is a text such as `laptop.17`, not .*\*ids"):
        ask(client, given)


def test_an_id_is_no_list_of_ids() -> None:
    async def listened() -> list[object]:
        async with AsyncClient() as client:
            return [task async for task in client.as_completed("left.1")]

    with Client() as client, pytest.raises(TypeError, match="a list of ids"):
        list(client.as_completed("left.1"))
    with pytest.raises(TypeError, match="a list of ids"):
        asyncio.run(listened())
