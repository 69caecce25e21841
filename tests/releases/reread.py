"""What a release reads of a database and of messages, as JSON: `RELEASE/python reread.py FOLDER`, with its own code.

FOLDER has `module.db` and `again.json`, a list of messages by name and bytes.
"""

import base64
import json
import sys
from pathlib import Path

import msgspec

from messiahs.core.interface.rows import RowKind, key_of
from messiahs.daemon.storage.store import RowStore
from messiahs.trace.format.rows import encode_key
from messiahs.wire import codec


def reread(folder: Path) -> dict[str, object]:
    """Return the rows by kind and key, and the messages in their order."""
    store = RowStore(folder / "module.db")
    rows = {}
    for row in (row for kind in RowKind for row in store.rows_of(kind)):
        kind, key = encode_key(key_of(row))
        rows[f"{kind} {base64.b64encode(key).decode()}"] = msgspec.to_builtins(row)
    store.close()
    messages = [
        msgspec.to_builtins(getattr(codec, f"{name}_from_bytes")(base64.b64decode(content)))
        for name, content in json.loads((folder / "again.json").read_bytes())
    ]
    return {"rows": rows, "messages": messages}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(reread(Path(sys.argv[1]))))
