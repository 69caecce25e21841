"""Uploading files to a module: each content once, only those that it lacks, and small ones in groups."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import TypeVar

from messiahs.client.inputs import LocalContent, changed, pieces_of, small_content
from messiahs.client.module import ModuleClient
from messiahs.client.progress import OnProgress, silent
from messiahs.errors import ClientError

T = TypeVar("T")
QUESTION_LIMIT = 10_000
"""Number of hashes in one request."""
_SMALL_BYTES = 64 << 10
_GROUP_BYTES = 4 << 20
GROUP_FILES = 2_000
"""Smaller files are grouped, up to this many bytes and files in one request."""


def upload(module: ModuleClient, contents: Mapping[str, LocalContent], *, on_progress: OnProgress = silent) -> int:
    """Upload contents, by hash, and return the number of bytes sent; a repetition sends nothing twice.

    Memory holds one piece, or one group of small files, at a time. A file that changed since it was hashed is a
    `ClientError`.
    """
    missing = [contents[sha256] for sha256 in _missing(module, sorted(contents))]
    total, done = sum(content.size_bytes for content in missing), 0
    for group in _grouped(missing, _size_of):
        if len(group) > 1:
            # The module hashes what it stores, so these files are not hashed again here.
            stored = module.put_files([small_content(content) for content in group])
            if len(stored) != len(group):
                raise ClientError(f"the module stored {len(stored)} of {len(group)} files")
            for content, sha256 in zip(group, stored, strict=True):
                if sha256 != content.sha256:
                    raise changed(content)
            done += sum(content.size_bytes for content in group)
            on_progress("uploading", done, total)
            continue
        (content,), before = group, done

        def pieces(content: LocalContent = content, before: int = before) -> Iterator[bytes]:
            sent = before
            for piece in pieces_of(content):
                yield piece
                sent += len(piece)
                on_progress("uploading", sent, total)

        module.put_file(content.sha256, pieces, size_bytes=content.size_bytes)
        done += content.size_bytes
    return total


def put_contents(module: ModuleClient, contents: Iterable[bytes]) -> None:
    """Upload contents that are in memory, small ones in groups."""
    for group in _grouped(contents, len):
        if len(group) > 1:
            module.put_files(group)
            continue
        (content,) = group
        module.put_file(sha256(content).hexdigest(), partial(_whole, content), size_bytes=len(content))


def _whole(content: bytes) -> list[bytes]:
    return [content]


def _size_of(content: LocalContent) -> int:
    return content.size_bytes


def _grouped(missing: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield large files alone, then small ones in groups."""
    small: list[T] = []
    for content in missing:
        if size_of(content) > _SMALL_BYTES:
            yield [content]
        else:
            small.append(content)
    group: list[T] = []
    size_bytes = 0
    for content in small:
        if group and (size_bytes + size_of(content) > _GROUP_BYTES or len(group) >= GROUP_FILES):
            yield group
            group, size_bytes = [], 0
        group.append(content)
        size_bytes += size_of(content)
    if group:
        yield group


def _missing(module: ModuleClient, hashes: list[str]) -> Iterator[str]:
    for start in range(0, len(hashes), QUESTION_LIMIT):
        asked = hashes[start : start + QUESTION_LIMIT]
        lacking = frozenset(module.missing_files(asked))
        yield from (sha256 for sha256 in asked if sha256 in lacking)
