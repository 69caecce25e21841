"""What the processes of an attempt used, as the kernel counts it when their first process is reaped."""

import resource
from dataclasses import replace

from messiahs.core.model.usage import Usage

_KIB = 1024
_BLOCK_BYTES = 512
_SECOND_NS = 1_000_000_000


def usage_of(used: resource.struct_rusage) -> Usage:
    """Return what a process and its descendants used that it, or one of them, has reaped.

    The peak is that of the largest single process. A process begins with the peak of the one that spawned it, so a
    peak that is not above that of the starter is not known.
    """
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Usage(
        cpu_ns=round((used.ru_utime + used.ru_stime) * _SECOND_NS),
        peak_memory_bytes=used.ru_maxrss * _KIB if used.ru_maxrss > own_peak else None,
        written_bytes=used.ru_oublock * _BLOCK_BYTES,
        read_bytes=used.ru_inblock * _BLOCK_BYTES,
    )


def together(first: Usage, second: Usage) -> Usage:
    """Return what two processes of an attempt used that were reaped apart; what is not known of one counts as 0."""
    peaks = [peak for peak in (first.peak_memory_bytes, second.peak_memory_bytes) if peak is not None]
    return replace(
        first,
        cpu_ns=(first.cpu_ns or 0) + (second.cpu_ns or 0),
        peak_memory_bytes=max(peaks, default=None),
        written_bytes=(first.written_bytes or 0) + (second.written_bytes or 0),
        read_bytes=(first.read_bytes or 0) + (second.read_bytes or 0),
    )
