"""Laws of predicates on random ones: formatting, agreement with a naive evaluator, soundness over classes.

A random predicate is a list of words, so that the naive evaluator shares nothing with the parser.
"""

import json
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, Description, layout_of, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview
from messiahs.core.vectors.vectors import VARIOUS, Interval, MachineClass, Vector, coalesce, vector_of
from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.parsing import parse_expression
from messiahs.language.predicate.predicates import parse_predicate
from tests.property.budget import examples

INTEGERS = st.sampled_from([-(2**63), -9, -1, 0, 1, 2, 3, 9, 10, 11, 100, 2**63 - 1])
STRINGS = st.sampled_from(["", "A", "a", "b", "ba", "é", '"', "\\", "\n", "\\n", "\U00010000", "\uffff"])
STRING_COMPARATORS = {"ls", "le", "eq", "ne", "ge", "gr"}
VARIABLES = st.sampled_from(["$a", "$b", "$c"])


def _comparison(operands: st.SearchStrategy[str], comparators: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.tuples(operands, st.sampled_from(comparators), operands).map(list)


COMPARISONS = _comparison(VARIABLES | INTEGERS.map(str), ("<", "<=", "=", "<>", ">=", ">")) | _comparison(
    st.sampled_from(["$b", "$c", "$d"]) | STRINGS.map(lambda text: json.dumps(text, ensure_ascii=False)),
    tuple(sorted(STRING_COMPARATORS)),
)


def _larger(smaller: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    joined = st.tuples(smaller, st.sampled_from(["and", "or", "xor"]), smaller)
    return (
        joined.map(lambda parts: [*parts[0], parts[1], *parts[2]])
        | smaller.map(lambda words: ["not", *words])
        | smaller.map(lambda words: ["(", *words, ")"])
    )


PREDICATES = st.recursive(COMPARISONS, _larger, max_leaves=8)

# `$a` is a number, `$d` a string, `$b` and `$c` are either; each may be missing.
MACHINES = st.fixed_dictionaries(
    {}, optional={"a": INTEGERS, "b": INTEGERS | STRINGS, "c": STRINGS | INTEGERS, "d": STRINGS}
)


Part = TypeVar("Part")
Word = str | tuple[Value]
"""A word as written, or (in a tuple) the value of an operand."""


def _naive(words: list[str], description: Description) -> bool:
    """Evaluate as in the paper: fill in every variable first; False if one cannot be filled in."""
    filled: list[Word] = []
    for place, word in enumerate(words):
        beside = words[max(0, place - 1) : place + 2]
        kind = str if STRING_COMPARATORS & set(beside) else int
        if word.startswith("$"):
            value = description.get(word[1:])
            if not isinstance(value, kind):
                return False
            filled.append((value,))
        elif word.startswith('"') or word.lstrip("-").isdigit():
            filled.append((json.loads(word),))
        else:
            filled.append(word)
    return _evaluate(filled)


def _evaluate(words: list[Word]) -> bool:
    for connective in ("or", "xor", "and"):
        parts = _split(words, connective)
        if len(parts) > 1:
            answers = [_evaluate(part) for part in parts]
            return {"or": any(answers), "xor": answers.count(True) % 2 == 1, "and": all(answers)}[connective]
    if words[0] == "not":
        return not _evaluate(words[1:])
    if words[0] == "(":
        return _evaluate(words[1:-1])
    left, comparator, right = (word[0] if isinstance(word, tuple) else word for word in words)
    return _compare(str(comparator), _sign(left, right))


def _sign(left: Value, right: Value) -> int:
    return (_rank(left) > _rank(right)) - (_rank(left) < _rank(right))


def _rank(value: Value) -> tuple[int, list[int]]:
    return (0, [ord(character) for character in value]) if isinstance(value, str) else (value, [])


def _compare(comparator: str, sign: int) -> bool:
    true_for = {"<": [-1], "<=": [-1, 0], "=": [0], "<>": [-1, 1], ">=": [0, 1], ">": [1]}
    true_for |= {"ls": [-1], "le": [-1, 0], "eq": [0], "ne": [-1, 1], "ge": [0, 1], "gr": [1]}
    return sign in true_for[comparator]


def _split(words: Sequence[Part], connective: str) -> list[list[Part]]:
    parts: list[list[Part]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == connective and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


@given(PREDICATES, MACHINES)
def test_a_predicate_agrees_with_the_naive_evaluator(words: list[str], machine: dict[str, Value]) -> None:
    assert parse_predicate(" ".join(words)).holds(machine) is _naive(words, machine)


@given(PREDICATES, st.lists(MACHINES, min_size=1, max_size=3))
def test_code_is_generated_at_the_second_use_and_agrees(words: list[str], machines: list[dict[str, Value]]) -> None:
    predicate = parse_predicate(" ".join(words))
    for machine in machines:
        layout, values = layout_of(machine), tuple(machine.values())
        answers = [predicate.bound_to(layout)(values) for _ in range(3)]
        assert answers == [_naive(words, machine)] * 3


@given(PREDICATES)
def test_parsing_a_formatted_predicate_gives_the_same_tree(words: list[str]) -> None:
    expression = parse_expression(" ".join(words))
    formatted = format_predicate(expression)
    assert parse_expression(formatted) == expression
    assert format_predicate(parse_expression(formatted)) == formatted


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs")) | st.sampled_from('\n\t"\\'), max_size=30))
def test_every_string_can_be_written(value: str) -> None:
    written = format_predicate(parse_expression(f"$a eq {json.dumps(value, ensure_ascii=False)}"))
    assert parse_predicate(written).holds({"a": value})


def _class_of(machines: list[dict[str, Value]], withheld: set[str]) -> MachineClass:
    """Return the one class that contains all machines; no machine has the withheld attributes."""
    (whole,) = coalesce((vector_of(SDV(sorted_pairs(machine))) for machine in machines), keys=()).classes
    return MachineClass(
        count=whole.count,
        attributes=tuple((name, value) for name, value in whole.attributes if name not in withheld),
        some_lack=tuple(name for name in whole.some_lack if name not in withheld),
    )


@examples(300)
@given(PREDICATES, st.lists(MACHINES, min_size=1, max_size=4), st.sets(st.sampled_from("abcd"), max_size=1))
def test_the_evaluation_of_a_class_agrees_with_its_machines(
    words: list[str], machines: list[dict[str, Value]], withheld: set[str]
) -> None:
    predicate, machine_class = parse_predicate(" ".join(words)), _class_of(machines, withheld)
    answers = [predicate.holds(machine) for machine in machines]
    surely, could = predicate.over(IndexedVector(Vector((machine_class,))))
    assert surely in (0, could)
    if surely:
        assert all(answers)
    if any(answers):
        assert could == 1


CLASSES = st.builds(_class_of, st.lists(MACHINES, min_size=1, max_size=3), st.sets(st.sampled_from("abcd"), max_size=1))


@examples(300)
@given(PREDICATES, st.lists(CLASSES, max_size=6))
def test_all_classes_at_once_are_evaluated_like_each_by_itself(words: list[str], classes: list[MachineClass]) -> None:
    surely, could = parse_predicate(" ".join(words)).over(IndexedVector(Vector(tuple(classes))))
    expected = [_naive_of_class(words, machine_class) for machine_class in classes]
    assert [(surely >> place & 1, could >> place & 1) for place in range(len(classes))] == expected
    assert could < 1 << len(classes)


VIEWS = st.dictionaries(st.sampled_from("ABCD"), st.lists(CLASSES, max_size=3).map(lambda said: Vector(tuple(said))))


@examples(200)
@given(st.lists(st.tuples(VIEWS, PREDICATES), min_size=1, max_size=5))
def test_joined_views_are_evaluated_like_each_by_itself_after_any_change(
    steps: list[tuple[dict[str, Vector], list[str]]],
) -> None:
    overview = Overview()
    asked = [parse_predicate(" ".join(words)) for _, words in steps]
    for views, _ in steps:
        named = {SystemId(name): IndexedVector(view) for name, view in views.items()}
        for predicate in asked:
            alone = [predicate.over(view) for view in named.values()]
            assert overview.judged(named, predicate.over) == alone


Span = tuple[Value, Value] | None
Verdict = bool | None


def _naive_of_class(words: list[str], machine_class: MachineClass) -> tuple[bool, bool]:
    """Evaluate the ends of every interval, one comparison after the other: certain and possible."""
    said = dict(machine_class.attributes)
    kinds: dict[str, type] = {}
    spans: dict[str, Span] = {}
    for place, word in enumerate(words):
        if not word.startswith("$"):
            continue
        kind = str if STRING_COMPARATORS & set(words[max(0, place - 1) : place + 2]) else Interval
        value = VARIOUS if word[1:] in machine_class.some_lack else said.get(word[1:], VARIOUS)
        if kinds.setdefault(word, kind) is not kind or not (value is VARIOUS or isinstance(value, kind)):
            return (False, False)
        if isinstance(value, Interval):
            spans[word] = (lowest_in(value.low), highest_in(value.high))
        else:
            spans[word] = (value, value) if isinstance(value, str) else None
    verdict = _verdict(words, spans)
    return (verdict is True and None not in spans.values(), verdict is not False)


def _verdict(words: list[str], spans: dict[str, Span]) -> Verdict:
    for connective in ("or", "xor", "and"):
        parts = _split(words, connective)
        if len(parts) > 1:
            verdicts = [_verdict(part, spans) for part in parts]
            if connective == "xor":
                return None if None in verdicts else verdicts.count(True) % 2 == 1
            decided_by = connective == "or"
            return decided_by if decided_by in verdicts else None if None in verdicts else not decided_by
    if words[0] == "not":
        verdict = _verdict(words[1:], spans)
        return None if verdict is None else not verdict
    if words[0] == "(":
        return _verdict(words[1:-1], spans)
    left, right = (_span(word, spans) for word in (words[0], words[2]))
    return None if left is None or right is None else _verdict_on(words[1], left, right)


def _span(word: str, spans: dict[str, Span]) -> Span:
    return spans[word] if word.startswith("$") else (json.loads(word), json.loads(word))


def _verdict_on(comparator: str, left: tuple[Value, Value], right: tuple[Value, Value]) -> Verdict:
    """Try the ends against each other; between them lie all other results, and equality where the intervals meet."""
    signs = {_sign(one, other) for one in left for other in right}
    if signs >= {-1, 1}:
        signs.add(0)
    answers = {_compare(comparator, sign) for sign in signs}
    return answers.pop() if len(answers) == 1 else None
