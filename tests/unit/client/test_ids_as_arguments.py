"""Ids in the place of lists of ids, lists in the place of ids, and other arguments that are none."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from messiahs.client.asynchronous import AsyncClient
from messiahs.client.tasks import Client
from messiahs.errors import ClientError


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


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda client: client.wait("left.1", timeout="x"), r"`timeout` is a number of seconds, not 'x' \(str\)"),
        (lambda client: client.wait("left.1", timeout=True), "`timeout` is a number of seconds, not True"),
        (lambda client: client.fetch("left.1", into=3), r"`into` is the path of a folder, not 3 \(int\)"),
        (lambda client: client.retry("left.1", inputs="x"), "`inputs` is a list of texts, not one text"),
        (lambda client: client.retry("left.1", inputs=3), r"`inputs` is a list of texts, not 3 \(int\)"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(
    ask: Callable[[Any], object], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f" / "left").mkdir(parents=True)
    (tmp_path / "f" / "left" / "settings.json").touch()
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))
    with Client() as client, pytest.raises(TypeError, match=text):
        ask(client)


def test_a_command_without_a_word_is_refused_before_any_module_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f" / "left").mkdir(parents=True)
    (tmp_path / "f" / "left" / "settings.json").touch()
    monkeypatch.setenv("MESSIAHS_STATE", str(tmp_path))

    async def submitted() -> str:
        async with AsyncClient() as client:
            return await client.submit([])

    with Client() as client, pytest.raises(ClientError, match="the command has no word: name a program"):
        client.submit([])
    with Client() as client, pytest.raises(ClientError, match="the command has no word: name a program"):
        client.map([], range(3))
    with pytest.raises(ClientError, match="the command has no word: name a program"):
        asyncio.run(submitted())
