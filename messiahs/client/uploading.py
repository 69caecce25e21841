"""Files to a module: each content once, and only what it does not have yet."""

from collections.abc import Iterator, Mapping

from messiahs.client.inputs import LocalContent, pieces_of
from messiahs.client.module import ModuleClient
from messiahs.client.progress import OnProgress, silent

QUESTION_LIMIT = 10_000
"""How many hashes are asked for in one question."""


def upload(module: ModuleClient, contents: Mapping[str, LocalContent], *, on_progress: OnProgress = silent) -> int:
    """Bring contents, by hash, to a module and give the bytes that were sent; repeating it sends nothing twice.

    Nothing is kept in memory but one piece at a time. A file that changed since it was hashed is a `ClientError`.
    """
    missing = list(_missing(module, sorted(contents)))
    total, done = sum(contents[sha256].size_bytes for sha256 in missing), 0
    for sha256 in missing:
        content, before = contents[sha256], done

        def pieces(content: LocalContent = content, before: int = before) -> Iterator[bytes]:
            sent = before
            for piece in pieces_of(content):
                yield piece
                sent += len(piece)
                on_progress("uploading", sent, total)

        module.put_file(sha256, pieces, size_bytes=content.size_bytes)
        done += content.size_bytes
    return total


def _missing(module: ModuleClient, hashes: list[str]) -> Iterator[str]:
    for start in range(0, len(hashes), QUESTION_LIMIT):
        asked = hashes[start : start + QUESTION_LIMIT]
        lacking = frozenset(module.missing_files(asked))
        yield from (sha256 for sha256 in asked if sha256 in lacking)
