"""Texts of others that reach a person: which characters are taken for controls, and how they are shown."""

import json

import pytest

from messiahs.core.model.texts import has_control, printable, printable_json, printable_lines

CONTROLS = ["\0", "\n", "\t", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\u061c", "\u200e", "\u2028", "\u202e", "\u2066"]
PLAIN = ["", "plain", "naïve", "日本", "a\u200db", "\U0001f600", "back\\slash"]


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_character_is_found_and_escaped_wherever_it_is(control: str) -> None:
    for text in (control, f"a{control}", f"{control}b", f"é{control}é"):
        assert has_control(text)
        shown = printable(text)
        assert not has_control(shown)
        assert shown.isprintable()


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_them_is_left_as_it_is(text: str) -> None:
    assert not has_control(text)
    assert printable(text) == printable_lines(text) == printable_json(text) == text


def test_the_escapes_say_which_character_it_was() -> None:
    assert printable("a\x1b[31m\nb\x9b\u202ec\udcff") == r"a\x1b[31m\nb\x9b\u202ec\udcff"


def test_lines_can_be_kept() -> None:
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


@pytest.mark.parametrize("control", CONTROLS)
def test_json_is_still_the_same_document(control: str) -> None:
    document = {"text": f"é{control}"}
    shown = printable_json(json.dumps(document, ensure_ascii=False))
    assert not has_control(shown)
    assert json.loads(shown) == document
