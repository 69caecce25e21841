"""The inputs of a file of tasks in a simulation: only how long they are counts, so no file is read."""

from collections.abc import Iterable, Iterator, Sequence
from glob import iglob
from hashlib import sha256
from pathlib import Path

from messiahs.config.input_names import split_source
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.input_size import contents_of, own_bytes, with_input_size
from messiahs.core.model.task_files import InputFile

Files = tuple[InputFile, ...]


def inputs_in(texts: Iterable[str], items: Sequence[str]) -> tuple[Files, tuple[Files, ...]]:
    """Return the inputs that all members have, and those of each member; a file that is not there is left out."""
    own = [text for text in texts if PLACEHOLDER in text and items]
    shared = tuple(file for text in texts if text not in own for file in _files(text))
    if not own:
        return shared, ()
    return shared, tuple(
        tuple(file for text in own for file in _files(text.replace(PLACEHOLDER, item))) for item in items
    )


def described(tdv: TDV, shared: Files, *, own: Sequence[Files]) -> TDV:
    """Return a description with the size of the inputs, as a module states it."""
    common = contents_of(shared)
    most_own = max((own_bytes(files, common) for files in own), default=0)
    return with_input_size(tdv, sum(common.values()) + most_own)


def _files(text: str) -> Iterator[InputFile]:
    source, _ = split_source(text)
    found = [source] if Path(source).exists() else sorted(iglob(source))  # noqa: PTH207 - the user's own pattern
    for path in map(Path, found):
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                content = sha256(str(file).encode()).digest()
                yield InputFile(name=file.name, sha256=content, size_bytes=file.stat().st_size)
