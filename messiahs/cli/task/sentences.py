"""What a command about many tasks has come to, in one sentence."""

from collections.abc import Sequence

from messiahs.client.connection import Document
from messiahs.client.status import FINAL_STATES

_NAMED = 5
"""The most ids in the command that shows what has failed."""


def cancelled_text(cancelled: Sequence[Document]) -> str:
    """Return how many of the named tasks a cancel ends; empty if a module of an earlier release does not say so."""
    if not cancelled or not all("cancelled" in each for each in cancelled):
        return ""
    ended, named = (sum(each[part] for each in cancelled) for part in ("cancelled", "members"))
    others = named - ended
    if named == 1:
        # Of a task that had ended before, stderr says how.
        return f"{cancelled[0]['id']} cancelled" if ended else ""
    return f"{ended} of {named} cancelled" + (f"; {others} had ended before" if others else "")


def waited_text(ended: Sequence[Document]) -> str:
    """Return how many of several tasks have failed, with the command that shows those; empty for a single task."""
    if len(ended) == 1 and "counts" not in ended[0]:
        return ""
    counts = [count_ended(document) for document in ended]
    total, failed = sum(all_of for all_of, _ in counts), sum(bad for _, bad in counts)
    if not failed:
        return f"{total} ended, none failed"
    names = [str(document["id"]) for document, (_, bad) in zip(ended, counts, strict=True) if bad]
    shown = " ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    return f"{total} ended, {failed} failed: messiahs status {shown} --failed"


def count_ended(document: Document) -> tuple[int, int]:
    """Return how many tasks have ended, and how many of them without exit code 0; each member of an array counts."""
    counts = document.get("counts") or {document.get("substate") or document["state"]: 1}
    codes = document.get("exit_codes") or {str(document.get("exit_code")): 1}
    final = sum(count for state, count in counts.items() if state in FINAL_STATES)
    # A member without a declared output may have exited with 0 and is not finished.
    return final, final - min(codes.get("0", 0), counts.get("finished", 0)) if final else 0
