"""Files to a module: each content once, only what it does not have yet, and small ones together."""

from collections.abc import Iterable, Iterator, Mapping

from messiahs.client.inputs import LocalContent, pieces_of
from messiahs.client.module import ModuleClient
from messiahs.client.progress import OnProgress, silent
from messiahs.errors import ClientError

QUESTION_LIMIT = 10_000
"""How many hashes are asked for in one question."""
_SMALL_BYTES = 64 << 10
_GROUP_BYTES = 4 << 20
GROUP_FILES = 2_000
"""Smaller files travel together, up to so many bytes and files in one request."""


def upload(module: ModuleClient, contents: Mapping[str, LocalContent], *, on_progress: OnProgress = silent) -> int:
    """Bring contents, by hash, to a module and give the bytes that were sent; repeating it sends nothing twice.

    Nothing is kept in memory but one piece, or one group of small files, at a time. A file that changed since it was
    hashed is a `ClientError`.
    """
    missing = [contents[sha256] for sha256 in _missing(module, sorted(contents))]
    total, done = sum(content.size_bytes for content in missing), 0
    for group in _grouped(missing):
        if len(group) > 1:
            stored = module.put_files([b"".join(pieces_of(content)) for content in group])
            if stored != [content.sha256 for content in group]:
                raise ClientError("the module stored other files than it was sent")
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


def _grouped(missing: Iterable[LocalContent]) -> Iterator[list[LocalContent]]:
    """Give large files alone, and then small ones in groups."""
    small: list[LocalContent] = []
    for content in missing:
        if content.size_bytes > _SMALL_BYTES:
            yield [content]
        else:
            small.append(content)
    group: list[LocalContent] = []
    size_bytes = 0
    for content in small:
        if group and (size_bytes + content.size_bytes > _GROUP_BYTES or len(group) >= GROUP_FILES):
            yield group
            group, size_bytes = [], 0
        group.append(content)
        size_bytes += content.size_bytes
    if group:
        yield group


def _missing(module: ModuleClient, hashes: list[str]) -> Iterator[str]:
    for start in range(0, len(hashes), QUESTION_LIMIT):
        asked = hashes[start : start + QUESTION_LIMIT]
        lacking = frozenset(module.missing_files(asked))
        yield from (sha256 for sha256 in asked if sha256 in lacking)
