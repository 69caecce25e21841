"""The text that Prometheus reads, with the measures of the process itself (`process_…`)."""

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from messiahs.daemon.metrics.families import Reading, families_of


class Renderer:
    """Makes the text; `text_of` may run in any thread."""

    kind = CONTENT_TYPE_LATEST
    """The type of the text."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)

    def families(self, reading: Reading) -> list[Metric]:
        """Return the families of a reading, which later counting does not change."""
        return families_of(reading)

    def text_of(self, families: list[Metric]) -> bytes:
        """Return families as text, and what the kernel says about this process."""
        return generate_latest(_Both(families, self._process))


class _Both(Collector):
    def __init__(self, families: list[Metric], process: ProcessCollector) -> None:
        self._families, self._process = families, process

    def collect(self) -> Iterator[Metric]:
        yield from self._families
        yield from self._process.collect()
