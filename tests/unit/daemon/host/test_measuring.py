"""A machine is measured for as long as its daemon runs."""

import asyncio
from pathlib import Path

import pytest

from messiahs.core.interface.events import Measured
from messiahs.daemon.host.measuring import measure_periodically
from messiahs.executor.stub import StubExecutor
from messiahs.probe.proc import ProcProbe
from tests.descriptors import no_free_descriptor
from tests.waiting import until


def test_it_continues_after_no_file_could_be_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        measured: list[Measured] = []
        measuring = asyncio.create_task(
            measure_periodically(
                ProcProbe({}, lambda: tmp_path), StubExecutor(), on_measured=measured.append, period_seconds=0.001
            )
        )
        try:
            await until(lambda: measured)
            with no_free_descriptor():
                await until(lambda: "could not be measured" in caplog.text)
                before = len(measured)
            await until(lambda: len(measured) > before)
            assert dict(measured[-1].sdv.pairs)["isolation"] == "process"
        finally:
            measuring.cancel()

    asyncio.run(main())
    assert caplog.text.count("Too many open files") == 1
