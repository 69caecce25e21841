"""The metrics of a running module: counted in its steps, read when somebody asks, and served as its settings say."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from messiahs import __version__
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.config.settings import ModuleSettings
from messiahs.core import queries
from messiahs.daemon.host.host import Host
from messiahs.daemon.metrics.endpoint import Endpoint
from messiahs.daemon.metrics.file_bytes import FileBytes
from messiahs.daemon.metrics.tally import Tally
from messiahs.daemon.otlp.sender import SpanCounts
from messiahs.daemon.transfer.budgets import Budgets
from messiahs.errors import MessiahsError

if TYPE_CHECKING:
    from messiahs.daemon.metrics.families import Reading
    from messiahs.daemon.metrics.text import Renderer

_EXTRA: Final = "pip install 'messiahs[metrics]'"


class ServedMetrics:
    """The metrics of a module from before it starts on, and the endpoint that serves them, if its settings name one."""

    def __init__(
        self, settings: ModuleSettings, host: Host, budgets: Budgets, /, *, tls: TlsInForce, spans: SpanCounts
    ) -> None:
        """Count what the module does from now on. Raises a `MessiahsError` if the endpoint cannot work."""
        self._endpoint: Endpoint | None = None
        if settings.metrics is not None:
            metrics = ModuleMetrics(host, budgets, spans, federation=settings.federation, renderer=_renderer())
            self._endpoint = Endpoint(settings.metrics, tls, metrics.render)
            host.driver.watchers.append(metrics.tally)

    async def start(self) -> None:
        """Answer from now on."""
        if self._endpoint is not None:
            await self._endpoint.start()

    async def stop(self) -> None:
        """End all connections."""
        if self._endpoint is not None:
            await self._endpoint.stop()


class ModuleMetrics:
    """What is counted in a module, and what can be read of it at any time."""

    def __init__(
        self, host: Host, budgets: Budgets, spans: SpanCounts, /, *, federation: str, renderer: "Renderer"
    ) -> None:
        self._host, self._budgets, self._spans = host, budgets, spans
        self._federation, self._renderer = federation, renderer
        self.tally = Tally(host.module)
        self._file_bytes = FileBytes()

    async def render(self) -> tuple[bytes, str]:
        """Return all metrics as text, and its type. Events of the module are handled between the parts of the work."""
        families = self._renderer.families(await self._read())
        return await asyncio.to_thread(self._renderer.text_of, families), self._renderer.kind

    async def _read(self) -> "Reading":
        from messiahs.daemon.metrics.families import About, Reading  # noqa: PLC0415 - it needs the extra

        host = self._host
        counting = queries.counting(host.module.state, host.clock.now())
        while True:
            try:
                next(counting)
            except StopIteration as done:
                counts = done.value
                break
            await asyncio.sleep(0)
        self.tally.keep_only(counts.linked, host.clock.now())
        return Reading(
            about=About(release=__version__, federation=self._federation, module=host.system),
            counts=counts,
            tally=self.tally,
            messages={each: found for each, found in host.channels.counters.items() if each in counts.linked},
            file_bytes=self._file_bytes.read(self._budgets.moved_bytes, counts.linked),
            throttled=frozenset(each for each in counts.linked if host.driver.is_throttled(each)),
            has_commit_failed=host.driver.has_failed,
            spans=replace(self._spans),
        )


def _renderer() -> "Renderer":
    try:
        from messiahs.daemon.metrics.text import Renderer  # noqa: PLC0415 - it needs the extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        text = f"`metrics` of the topology needs prometheus-client, which is not installed: {_EXTRA}"
        raise MessiahsError(text) from error
    return Renderer()
