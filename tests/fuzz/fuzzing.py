"""One target under the fuzzer: `python -m tests.fuzz.fuzzing TARGET [what libFuzzer takes]`; it never returns."""

import sys

import atheris

with atheris.instrument_imports(include=["messiahs"], exclude=["messiahs.wire.v1"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
