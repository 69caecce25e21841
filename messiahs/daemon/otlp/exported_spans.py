"""The spans of a running module: seen in its steps, and sent where its settings say."""

from functools import partial
from typing import TYPE_CHECKING, Final

from messiahs.config.settings import ModuleSettings
from messiahs.daemon.host.host import Host
from messiahs.daemon.otlp.attempt_spans import AttemptSpan, SpanWatcher
from messiahs.daemon.otlp.sender import SpanCounts, SpanSender
from messiahs.errors import MessiahsError

if TYPE_CHECKING:
    from messiahs.daemon.otlp.encoding import Encoder

_EXTRA: Final = "pip install 'messiahs[otlp]'"


class ExportedSpans:
    """The spans of a module from before it starts on, if its settings name a collector; else it does nothing."""

    def __init__(self, settings: ModuleSettings, host: Host) -> None:
        """Hold what the module does from now on. Raises a `MessiahsError` if nothing can be sent."""
        self.counts = SpanCounts()
        self._host = host
        self._sender: SpanSender | None = None
        if settings.otlp is not None:
            encode = partial(self._body_of, _encoder(settings))
            self._sender = SpanSender(settings.otlp, encode, self.counts)
            host.driver.watchers.append(SpanWatcher(host.module, self._sender.put))

    def start(self) -> None:
        """Send from now on."""
        if self._sender is not None:
            self._sender.start()

    async def stop(self) -> None:
        """Send what waits, for a short time."""
        if self._sender is not None:
            await self._sender.stop()

    def _body_of(self, encoder: "Encoder", spans: list[AttemptSpan]) -> bytes:
        return encoder.body_of(spans, wall_offset_ns=self._host.clock.wall_offset_ns())


def _encoder(settings: ModuleSettings) -> "Encoder":
    try:
        from messiahs.daemon.otlp.encoding import Encoder  # noqa: PLC0415 - it needs the extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        text = f"`otlp` of the topology needs opentelemetry-proto, which is not installed: {_EXTRA}"
        raise MessiahsError(text) from error
    return Encoder(federation=settings.federation, module=settings.name)
