"""What people are told about notifications of the ends of their tasks."""

from messiahs.cli.output import local_time
from messiahs.client.connection import Document


def notified_text(document: Document) -> str:
    """Return whether and when the user was notified of an end, and why not; empty if that was not asked for."""
    notified = document.get("notified")
    if not notified:
        return ""
    if notified["at"] is None:
        retry = notified.get("retry")
        return _retry_text(retry, notified["problem"]) if retry else "its user is being notified of the end"
    if not notified["problem"]:
        return f"its user was notified of the end at {local_time(notified['at'])}"
    last = notified["output"].splitlines()[-1:]
    printed = f"; it printed: {last[0]}" if last else ""
    return f"--notify failed at {local_time(notified['at'])}: {notified['problem']}{printed}"


def _retry_text(retry: Document, problem: str) -> str:
    again = "it is tried again now" if retry["next_at"] is None else f"next at {local_time(retry['next_at'])}"
    return f"--notify: try {retry['tries']} failed: {problem}; {again}"
