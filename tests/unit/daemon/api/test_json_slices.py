"""Large bodies in JSON that are decoded in slices."""

import json
from itertools import islice
from typing import Any

import msgspec
import pytest

from messiahs.core.interface.dependencies import When
from messiahs.core.interface.limits import WORKFLOW_LIMIT
from messiahs.core.model.instants import MILLISECOND
from messiahs.daemon.api import json_slices
from messiahs.daemon.api.json_slices import FIELDS_LIMIT_BYTES, SMALL_BYTES, Elements, decoding
from messiahs.daemon.api.submit_body import LISTS, SubmitBody
from messiahs.daemon.api.workflows import WorkflowBody, decoding_workflow
from tests.unit.daemon.api.steps import counted, result_of

_ODD = ("", ",", '"', "\\", '\\"', '","', "],[", "},{", "[", "}", "\n", "é", "\u2028", "x" * 40_000)
_INPUT = {"name": 'a ]},{["\\', "sha256": "ab" * 32, "size": 5}


def _submit(**said: object) -> dict[str, Any]:
    return {"key": "k", "argv": ["true"], **said}


def _text(
    document: dict[str, Any],
    *,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    ensure_ascii: bool = True,
) -> bytes:
    return json.dumps(document, indent=indent, separators=separators, ensure_ascii=ensure_ascii).encode()


@pytest.mark.parametrize("how", [{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])
@pytest.mark.parametrize(
    "said",
    [
        {"items": [*_ODD * 9, *map(str, range(30_000))]},
        {"items": ["x" * 300_000, "y", "x" * 300_000]},
        {"inputs": [_INPUT] * 2_000, "member_inputs": [[_INPUT], [], [_INPUT, _INPUT]] * 2_000},
        {"outputs": list(_ODD) * 9, "env": dict.fromkeys(_ODD, "]}"), "tdv": {"a": 1}},
        {"member_inputs": [], "items": [], "argv": ["x"] * 40_000},
    ],
)
def test_a_large_submit_is_decoded_as_if_at_once(said: dict[str, Any], how: dict[str, Any]) -> None:
    text = _text(_submit(**said), **how)
    assert len(text) > SMALL_BYTES
    assert result_of(decoding(text, SubmitBody, LISTS)) == msgspec.json.decode(text, type=SubmitBody)


def test_no_slice_has_more_than_a_bound_of_a_long_list_and_their_number_follows_from_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []
    at_once = json_slices.decoded

    def noting(content: bytes | memoryview, kind: type[object], /) -> object:
        lengths.append(len(content))
        return at_once(content, kind)

    monkeypatch.setattr(json_slices, "decoded", noting)
    text = _text(_submit(items=list(map(str, range(200_000)))))
    body, costs = counted(decoding(text, SubmitBody, LISTS))
    assert len(body.items) == 200_000
    # The first one skips the list.
    assert max(lengths[1:]) <= (32 << 10) + 1
    assert len(costs) > len(text) // (32 << 10)
    assert max(costs[1:]) <= MILLISECOND
    assert costs[0] >= len(text)


@pytest.mark.parametrize("said", [{"tdv": {f"a{number}": 1 for number in range(200_000)}}, {"argv": [""] * 600_000}])
def test_a_field_that_is_far_too_long_is_refused_before_it_is_decoded(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[object] = []
    at_once = json_slices.decoded

    def noting(content: bytes | memoryview, kind: type[object], /) -> object:
        kinds.append(kind)
        return at_once(content, kind)

    monkeypatch.setattr(json_slices, "decoded", noting)
    text = _text(_submit(**said))
    (name,) = said
    with pytest.raises(msgspec.ValidationError, match=rf"^`{name}` has \d+ bytes, .* at most {FIELDS_LIMIT_BYTES}$"):
        result_of(decoding(text, SubmitBody, LISTS))
    assert SubmitBody not in kinds


def test_of_a_field_that_is_repeated_only_the_last_one_is_decoded() -> None:
    text = b'{"key":"k","argv":["a"],"items":%b,"tdv":%b,"tdv":{"a":1}}' % (
        _text({"": ["x"] * 40_000})[5:-1],
        _text({f"a{number}": "wrong\n" for number in range(200_000)}),
    )
    assert result_of(decoding(text, SubmitBody, LISTS)).tdv == {"a": 1}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (_text(_submit(items=["x"] * 40_000 + [1])), "Unexpected value - at `$.items[40000]`"),
        (
            _text(_submit(member_inputs=[[]] * 40_000 + [[1]])),
            "Expected `object`, got `int` - at `$.member_inputs[40000][0]`",
        ),
        (_text(_submit(items=["x"] * 40_000 + [["x"]])), "Unexpected value - at `$.items[40000]`"),
        (_text(_submit(items=["x"] * 40_000, argv=[1])), "Expected `str`, got `int` - at `$.argv[0]`"),
        (_text(_submit(items=["x"] * 40_000, other=1)), "Object contains unknown field `other`"),
        (_text({"key": "k", "items": ["x"] * 40_000}), "Object missing required field `argv`"),
        (
            _text(_submit(inputs=[_INPUT] * 2_000 + [{**_INPUT, "size": -1}])),
            "Expected `int` >= 0 - at `$.inputs[2000].size`",
        ),
        (_text(_submit(items=["x"] * 40_000))[:-3], "Input data was truncated"),
        (_text(_submit(items=["x"] * 40_000)).replace(b'"x", "x"]', b'"x" "x"]'), "JSON is malformed"),
        (_text(_submit(items=["x"] * 40_000)).replace(b'"x"]', b'"\xff"]'), "it is not UTF-8"),
        (_text(_submit(items=["x"] * 40_000)).replace(b'"x"]', b"[" * 100_000), "it is nested too deeply"),
    ],
)
def test_an_error_names_its_place_in_the_whole_body(text: bytes, error: str) -> None:
    with pytest.raises(msgspec.MsgspecError) as raised:
        result_of(decoding(text, SubmitBody, LISTS))
    assert str(raised.value).startswith(error)


def test_a_large_workflow_is_decoded_as_if_at_once() -> None:
    parts = [
        {"argv": ["x", "]},{"], "inputs": [_INPUT], "within": [{"place": max(0, place - 1), "when": When.OK.value}] * 3}
        for place in range(2_000)
    ]
    parts[7] |= {"items": list(map(str, range(30_000)))}
    text = _text({"key": "k", "submissions": parts})
    body, costs = counted(decoding_workflow(text))
    assert body == msgspec.json.decode(text, type=WorkflowBody)
    # One submission has more than 32 KiB.
    assert max(costs[1:]) <= 8 * MILLISECOND
    parts[1_999]["argv"] = 1
    parts[3]["cwd"] = "x"
    with pytest.raises(
        msgspec.ValidationError, match=r"^Expected `array`, got `int` - at `\$.submissions\[1999\].argv`"
    ):
        result_of(decoding_workflow(_text({"key": "k", "submissions": parts})))


def test_a_workflow_of_too_many_is_refused_before_most_of_it_is_decoded() -> None:
    text = _text({"key": "k", "submissions": [{}] * 500_000})
    steps = decoding_workflow(text)
    with pytest.raises(msgspec.ValidationError, match=rf"^Expected `array` of length <= {WORKFLOW_LIMIT}"):
        assert len(list(islice(steps, 10))) == 10
    with pytest.raises(msgspec.ValidationError, match=r"^Expected `array` of length >= 1"):
        result_of(decoding_workflow(_text({"key": "k" * SMALL_BYTES, "submissions": []})))
    with pytest.raises(msgspec.ValidationError, match=r"missing required field `argv` - at `\$.submissions\[0\]`"):
        result_of(
            decoding_workflow(_text({"key": "k", "submissions": [{"cwd": ""}] * 4_000 + [{"cwd": "x" * 70_000}]}))
        )


def test_elements_that_are_no_json_are_never_taken_for_such() -> None:
    class Body(msgspec.Struct):
        names: tuple[str, ...]

    text = b'{"names":[%b]}' % b",".join(b'"%d"' % number for number in range(20_000))
    for after in (b'"\n"', b'"7"7"', b"77", b'""77""', b'"77",'):
        wrong = text.replace(b'"77"', after)
        with pytest.raises(msgspec.MsgspecError):
            result_of(decoding(wrong, Body, {"names": Elements.STRINGS}))
