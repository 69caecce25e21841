"""Long answers, written in pieces: other work is let in between."""

import asyncio
from typing import Final

from aiohttp import web

PARTS: Final = 64
"""Maximum number of parts of a piece, also of those that are left out."""
CHARACTERS: Final = 32 << 10
"""A piece of so many characters is written, however few parts it has."""


class Pieces:
    """An array in JSON, of which each part is written soon (mutable)."""

    def __init__(self, response: web.StreamResponse, opening: str) -> None:
        """Begin an answer that is prepared, with a text that ends in the bracket of the array."""
        self._response, self._text, self._separator = response, opening, ""
        self._looked = 0

    async def add(self, part: str | None) -> None:
        """Add an element; None if it is left out, which may have taken as long."""
        if part is not None:
            self._text += self._separator + part
            self._separator = ", "
        self._looked += 1
        if self._looked == PARTS or len(self._text) >= CHARACTERS:
            await self._response.write(self._text.encode())
            # A write never waits for a client that reads fast, so other work is let in here.
            await asyncio.sleep(0)
            self._text, self._looked = "", 0

    async def end(self, rest: str) -> None:
        """End the array, and the answer with a text."""
        await self._response.write(f"{self._text}]{rest}".encode())
        await self._response.write_eof()
