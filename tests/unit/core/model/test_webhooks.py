"""A notification is a webhook, by the scheme of its URL, or a command."""

import pytest

from messiahs.core.model.webhooks import is_webhook, problem_of


@pytest.mark.parametrize("text", ["https://x.org/y", "HTTPS://x.org/y", "http://localhost", "Http://[::1]:8080/"])
def test_a_scheme_of_the_web_in_any_case_is_a_webhook(text: str) -> None:
    assert (is_webhook(text), problem_of(text)) == (True, "")


@pytest.mark.parametrize("text", ["mail -s done me", "curl https://x.org", "./a://b", "true", "1://x", "a=b://c true"])
def test_what_begins_with_no_scheme_is_a_command(text: str) -> None:
    assert (is_webhook(text), problem_of(text)) == (False, "")


@pytest.mark.parametrize("text", ["ftp://x/y", "FTP://x/y", "svn+ssh://x", "htps://x.org/y"])
def test_another_scheme_is_neither(text: str) -> None:
    scheme = text.partition(":")[0].lower()
    assert problem_of(text) == f"`notify`: {scheme}:// is no webhook, whose URL begins with https:// or http://"


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_is_neither(text: str) -> None:
    assert problem_of(text).startswith("`notify` is empty")
