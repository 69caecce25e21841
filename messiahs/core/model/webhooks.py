"""How users are notified: by the URL of a webhook, or by a command (not in the papers)."""

import re
from typing import Final

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_OF_WEBHOOKS: Final = ("https", "http")


def is_webhook(text: str) -> bool:
    """Return whether a notification is posted to a URL; else it is a command. Schemes have no case (RFC 3986, 3.1)."""
    return _scheme_of(text) in _OF_WEBHOOKS


def problem_of(text: str) -> str:
    """Return why a text is neither a command nor the URL of a webhook; empty if it is one."""
    if not text.strip():
        return "`notify` is empty: name a command or the URL of a webhook, or leave it out"
    scheme = _scheme_of(text)
    if scheme and scheme not in _OF_WEBHOOKS:
        return f"`notify`: {scheme}:// is no webhook, whose URL begins with https:// or http://"
    return ""


def _scheme_of(text: str) -> str:
    """Return with which scheme a text begins, in lower case; empty without one."""
    found = _SCHEME.match(text)
    return found[1].lower() if found else ""
