"""What the processes of an attempt used, as the kernel counts it when their first process is reaped."""

import resource

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
