"""What a task used, in words."""

from messiahs.client.connection import Document

_MIB = 1 << 20


def usage_text(usage: Document | None) -> str:
    """Return what an attempt used, as far as its executor has measured it; empty if it has measured nothing."""
    parts = {"cpu_s": "{:.1f} s of processor time", "peak_memory_bytes": "{} of memory at its peak"}
    parts |= {"written_bytes": "{} written to disk", "read_bytes": "{} read from disk"}
    known = {name: (usage or {}).get(name) for name in parts}
    texts = []
    for name, value in known.items():
        if value is not None and (value or name == "cpu_s"):
            texts.append(parts[name].format(value if name == "cpu_s" else f"{value / _MIB:.1f} MiB"))
    return ", ".join(texts)
