"""Fuzz targets: functions of bytes that raise only if a guarantee is broken.

They need no fuzzer: every finding becomes a seed, and an ordinary test tries every seed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, STRING_LIMIT_BYTES, Kind, Value
from messiahs.core.model.descriptions import SDV, Description, layout_of, sorted_pairs
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import vector_of
from messiahs.errors import CodecError, PolicyError, PredicateError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.policytest.files import read_trials
from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.generated_code import generated_truth
from messiahs.language.predicate.predicates import ParsedPredicate, parse_predicate, predicate_parser
from messiahs.language.predicate.syntax import comparisons_of, uses_of
from messiahs.language.predicate.truth import truth_of
from messiahs.language.syntax.formatting import format_policy
from messiahs.wire import codec
from messiahs.wire.certificates import certificate_message_from_bytes, certificate_message_to_bytes
from messiahs.wire.limits import predicate_text
from messiahs.wire.reach import reach_message_from_bytes, reach_message_to_bytes

_NAMES_AT_MOST: Final = 16
_ACCEPTS_ALL: Final = parse_policy("accept from any { }", file="all.policy")


def fuzz_predicate(data: bytes) -> None:
    """Parse a predicate as a neighbor's; if valid, all evaluators agree, and its canonical form parses to it."""
    text = predicate_text(data)
    answer = predicate_parser(text)
    if isinstance(answer, BadPredicate):
        assert answer.text.encode()
        assert len(answer.text.splitlines()) == 1
        return
    assert isinstance(answer, ParsedPredicate)
    _check_format(answer)
    for description in _descriptions(answer):
        _judge(answer, description)


def fuzz_policy(data: bytes) -> None:
    """Parse a policy file; it is valid or its mistakes can be shown, and formatting is idempotent."""
    text = data.decode(errors="replace")
    with suppress(PolicyError):
        formatted = format_policy(text, file="fuzz.policy")
        assert _form_of(formatted) == formatted
    try:
        problems = parse_policy(text, file="fuzz.policy").warnings
    except PolicyError as error:
        problems = error.problems
        assert problems
    _can_be_shown(problems, text)


def fuzz_policytest(data: bytes) -> None:
    """Parse tests of a policy that accepts everything; their mistakes can always be shown."""
    text = data.decode(errors="replace")
    try:
        read_trials(text, file="fuzz.policytest", policy_of=lambda _: _ACCEPTS_ALL)
    except PolicyError as error:
        _can_be_shown(error.problems, text)


def fuzz_wire(data: bytes) -> None:
    """Decode bytes as a message of the kind selected by the first byte; a valid message survives a round trip."""
    readers = tuple(_CODECS)
    read = readers[data[0] % len(readers)] if data else readers[0]
    try:
        message = read(data[1:])
    except CodecError:
        return
    # A message of a kind that only later releases know is none.
    assert message is None or read(_CODECS[read](message)) == message


def _form_of(formatted: str) -> str:
    try:
        return format_policy(formatted, file="formatted.policy")
    except PolicyError as error:
        raise AssertionError(f"the form is ill-formed: {error}") from error


def _can_be_shown(problems: Sequence[Problem], text: str) -> None:
    lines = text.split("\n")
    for problem in problems:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert len(problem.message.splitlines()) == 1
        assert str(problem)


def _check_format(predicate: ParsedPredicate) -> None:
    formatted = format_predicate(predicate.expression)
    try:
        assert parse_predicate(formatted).expression == predicate.expression
    except PredicateError as error:
        # The formatted text may have more bytes or parentheses than its source.
        if "nested deeper" not in error.message and "longer" not in error.message:
            raise


def _judge(predicate: ParsedPredicate, description: Description) -> None:
    """Evaluate by a walk, by generated code, as the task filter does, and as a class of one machine."""
    held = predicate.holds(description)
    names = {name: place for place, name in enumerate(description)}
    if _has_all(predicate, description):
        values = tuple(description.values())
        assert truth_of(predicate.expression, names)(values) is held
        assert generated_truth(predicate.expression, names)(values) is held
    assert predicate.bound_to(layout_of(description))(tuple(description.values())) is held
    surely, could = predicate.over(IndexedVector(vector_of(SDV(sorted_pairs(description)))))
    assert surely <= held <= could


def _has_all(predicate: ParsedPredicate, description: Description) -> bool:
    types = {Kind.INTEGER: int, Kind.STRING: str}
    return all(isinstance(description.get(name), types[kind]) for name, kind in uses_of(predicate.expression))


def _descriptions(predicate: ParsedPredicate) -> Iterator[Description]:
    """Return machines that say values near those that the predicate compares with, and one that says nothing."""
    literals = [
        operand
        for comparison in comparisons_of(predicate.expression)
        for operand in (comparison.left, comparison.right)
        if isinstance(operand, int | str)
    ]
    numbers = [near for each in literals if isinstance(each, int) for near in (each - 1, each, each + 1)]
    numbers = [number for number in numbers if INTEGER_LOWEST <= number <= INTEGER_HIGHEST] or [0]
    strings = [each for each in literals if isinstance(each, str) and len(each.encode()) <= STRING_LIMIT_BYTES] or [""]
    uses = uses_of(predicate.expression)[:_NAMES_AT_MOST]
    yield {}
    for turn in range(3):
        said: dict[str, Value] = {}
        for place, (name, kind) in enumerate(uses):
            known = numbers if kind is Kind.INTEGER else strings
            said[name] = known[(7 * turn + 3 * place) % len(known)]
        yield said


_CODECS: Final[Mapping[Callable[[bytes], object], Callable[..., bytes]]] = MappingProxyType(
    {
        codec.control_from_bytes: codec.control_to_bytes,
        codec.status_vector_from_bytes: codec.status_vector_to_bytes,
        codec.transfer_from_bytes: codec.transfer_to_bytes,
        codec.read_request_from_bytes: codec.read_request_to_bytes,
        codec.put_request_from_bytes: codec.put_request_to_bytes,
        codec.put_answer_from_bytes: codec.put_answer_to_bytes,
        codec.chunk_from_bytes: codec.chunk_to_bytes,
        codec.feed_request_from_bytes: codec.feed_request_to_bytes,
        codec.feed_piece_from_bytes: codec.feed_piece_to_bytes,
        codec.feed_answer_from_bytes: codec.feed_answer_to_bytes,
        codec.bytes_wanted_from_bytes: codec.bytes_wanted_to_bytes,
        codec.join_request_from_bytes: codec.join_request_to_bytes,
        codec.join_answer_from_bytes: codec.join_answer_to_bytes,
        codec.pipe_begin_from_bytes: codec.pipe_begin_to_bytes,
        codec.pipe_content_from_bytes: codec.pipe_content_to_bytes,
        certificate_message_from_bytes: certificate_message_to_bytes,
        reach_message_from_bytes: reach_message_to_bytes,
    }
)

TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = MappingProxyType(
    {"predicate": fuzz_predicate, "policy": fuzz_policy, "policytest": fuzz_policytest, "wire": fuzz_wire}
)
