"""Generate the Python of the wire format: `python tests/unit/wire/regenerate.py [FOLDER]`.

The path of a proto file equals the Python path of its code, so that the generated imports are right as they are.
"""

import sys
from pathlib import Path

import grpc_tools  # type: ignore[import-untyped]  # ships no types
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[3]
PROTO = ROOT / "proto"


def regenerate(into: Path) -> None:
    """Write the generated modules, their types and their services below `into`."""
    sources = sorted(path.relative_to(PROTO).as_posix() for path in PROTO.rglob("*.proto"))
    shipped = Path(grpc_tools.__file__).parent / "_proto"
    targets = [f"--{kind}_out={into}" for kind in ("python", "pyi", "grpc_python")]
    code = protoc.main(["protoc", f"-I{PROTO}", f"-I{shipped}", *targets, *sources])
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    regenerate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
