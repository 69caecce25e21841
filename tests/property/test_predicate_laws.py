"""Laws of predicates on random ones: formatting, agreement with a naive evaluator, soundness over classes.

A random predicate is a list of words, so that the naive evaluator shares nothing with the parser.
"""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from messiahs.core.attributes import Value
from messiahs.core.descriptions import SDV, Description, sorted_pairs
from messiahs.core.vectors import MachineClass, coalesce, vector_of
from messiahs.language.formatting import format_predicate
from messiahs.language.parsing import parse_expression
from messiahs.language.predicates import parse_predicate

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


Word = str | tuple[Value]
"""A word as it was written, or (in a tuple) the value of an operand."""


def _naive(words: list[str], description: Description) -> bool:
    """Do as the paper says: fill in every variable, then evaluate; False if one cannot be filled in."""
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
    ranks = {value: rank for rank, value in enumerate(sorted([left, right], key=_rank))}
    return _compare(str(comparator), (ranks[left] > ranks[right]) - (ranks[left] < ranks[right]))


def _rank(value: Value) -> tuple[int, list[int]]:
    return (0, [ord(character) for character in value]) if isinstance(value, str) else (value, [])


def _compare(comparator: str, sign: int) -> bool:
    true_for = {"<": [-1], "<=": [-1, 0], "=": [0], "<>": [-1, 1], ">=": [0, 1], ">": [1]}
    true_for |= {"ls": [-1], "le": [-1, 0], "eq": [0], "ne": [-1, 1], "ge": [0, 1], "gr": [1]}
    return sign in true_for[comparator]


def _split(words: list[Word], connective: str) -> list[list[Word]]:
    parts: list[list[Word]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == connective and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


@settings(deadline=None)
@given(PREDICATES, MACHINES)
def test_a_predicate_holds_where_the_naive_evaluator_says_so(words: list[str], machine: dict[str, Value]) -> None:
    assert parse_predicate(" ".join(words)).holds(machine) is _naive(words, machine)


@settings(deadline=None)
@given(PREDICATES)
def test_parsing_what_was_formatted_gives_the_same_tree(words: list[str]) -> None:
    expression = parse_expression(" ".join(words))
    formatted = format_predicate(expression)
    assert parse_expression(formatted) == expression
    assert format_predicate(parse_expression(formatted)) == formatted


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs")) | st.sampled_from('\n\t"\\'), max_size=30))
def test_every_string_can_be_written(value: str) -> None:
    written = format_predicate(parse_expression(f"$a eq {json.dumps(value, ensure_ascii=False)}"))
    assert parse_predicate(written).holds({"a": value})


def _class_of(machines: list[dict[str, Value]], withheld: set[str]) -> MachineClass:
    """Give the one class that holds all machines; what is withheld is not said of any of them."""
    (whole,) = coalesce((vector_of(SDV(sorted_pairs(machine))) for machine in machines), keys=()).classes
    return MachineClass(
        count=whole.count,
        attributes=tuple((name, value) for name, value in whole.attributes if name not in withheld),
        some_lack=tuple(name for name in whole.some_lack if name not in withheld),
    )


@settings(deadline=None, max_examples=300)
@given(PREDICATES, st.lists(MACHINES, min_size=1, max_size=4), st.sets(st.sampled_from("abcd"), max_size=1))
def test_a_class_is_judged_as_its_machines_allow(
    words: list[str], machines: list[dict[str, Value]], withheld: set[str]
) -> None:
    predicate, machine_class = parse_predicate(" ".join(words)), _class_of(machines, withheld)
    answers = [predicate.holds(machine) for machine in machines]
    if predicate.surely(machine_class):
        assert all(answers)
        assert predicate.could(machine_class)
    if any(answers):
        assert predicate.could(machine_class)
