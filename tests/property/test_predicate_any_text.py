"""For any text, the parser returns a predicate or an error that can be shown."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.predicates import BadPredicate
from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate, predicate_parser
from messiahs.language.predicate.syntax import COMPARATORS, Connective
from tests.property.budget import examples

WORDS = [*COMPARATORS, *Connective, "not", "(", ")", "lt", "==", "&&", "$a", "$b", "1", "-1", "007", "9" * 30, "4GiB"]
STRINGS = ['""', '"x"', r'"\n"', r'"\q"']
ODDITIES = list('"\\$.-#é \r\t\n\0\N{LINE SEPARATOR}\ud800\N{RIGHT-TO-LEFT OVERRIDE}')
PIECES = [*WORDS, *STRINGS, *ODDITIES]
NEAR_PREDICATES = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=12
).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=())) | NEAR_PREDICATES


@examples(400)
@given(ANY_TEXT)
def test_only_predicate_errors_leave_the_parser(text: str) -> None:
    answer = predicate_parser(text)
    try:
        predicate = parse_predicate(text)
    except PredicateError as error:
        assert isinstance(answer, BadPredicate)
        _can_be_shown(error, answer)
    else:
        assert answer == predicate
        assert predicate.text == text


def _can_be_shown(error: PredicateError, answer: BadPredicate) -> None:
    lines = error.source.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert str(error).encode()
    assert answer.text.encode()
    assert len(answer.text.splitlines()) == 1
