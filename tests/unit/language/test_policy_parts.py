"""Parts that a policy names: `part(NAME = LITERAL, ...)` in every block, and the positions of mistakes in them."""

from dataclasses import dataclass

import pytest

from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import Randomness, TaskOrderQuery
from messiahs.core.model.attributes import Kind
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.explaining.parts import parts_of
from messiahs.language.policytest.execution import try_out
from messiahs.language.policytest.files import read_trials
from messiahs.language.syntax.formatting import format_policy
from messiahs.language.syntax.problems import Code
from messiahs.policy.built_in import Catalogue, Found
from messiahs.policy.external_parts import Guarded
from messiahs.policy.location import RoundRobin
from messiahs.policy.parts import DeclaredPart, Parameter
from messiahs.policy.update import key_changes
from tests.unit.language.policy_rig import NOON, Draws, candidate, policy, ranked, ranking
from tests.unit.language.trial_rig import came

TURNS = """
    candidate "a" { free_slots = 1; relation = "parent"; }
    candidate "b" { free_slots = 1; relation = "child"; }
    candidate "full" { free_slots = 0; }
"""


def _choosy(name: str, *, penalty: int) -> RoundRobin:
    if penalty == 13:
        raise ValueError(f"{name} has no luck")
    return RoundRobin()


CHOOSY = DeclaredPart(
    kind=PartKind.LOCATION,
    name="choosy",
    meaning="for this test",
    make=_choosy,
    parameters=(
        Parameter(name="penalty", meaning="of some kind", low=1, high=20),
        Parameter(name="name", meaning="whose", kind=Kind.STRING, choices=("x", "y"), default="x"),
    ),
)


@pytest.mark.parametrize(
    ("text", "place", "code", "message", "hint"),
    [
        (
            "rank candidates by arrival();",
            "1:20",
            Code.UNKNOWN_PART,
            "`arrival` is not a part",
            "a part of `rank tasks`",
        ),
        ("rank tasks by nobody();", "1:15", Code.UNKNOWN_PART, "`nobody` is not a part of `rank tasks`", "are arrival"),
        ("allocate by as_aksed();", "1:13", Code.UNKNOWN_PART, "`as_aksed` is not a part", "`as_asked`"),
        ("migrate by most() { }", "1:12", Code.SYNTAX, "a name is missing before `most`", ""),
        ("migrate by least_run(x = 1) { }", "1:22", Code.PARAMETER, "`x` is not a parameter", "it has no parameters"),
        ("rank candidates by choosy();", "1:20", Code.PARAMETER, "`choosy` needs penalty", "are penalty, name"),
        ("rank candidates by choosy(penalty = 0);", "1:37", Code.PARAMETER_VALUE, "from 1 to 20", "without a unit"),
        ("rank candidates by choosy(penalty = 3s);", "1:37", Code.PARAMETER_VALUE, "is a plain number", ""),
        ('rank candidates by choosy(penalty = "3");', "1:37", Code.PARAMETER_VALUE, "is a plain number", ""),
        ("rank candidates by choosy(penalty = 13);", "1:20", Code.PARAMETER_VALUE, "ValueError: x has no luck", ""),
        (
            'rank candidates by choosy(penalty = 3, name = "z");',
            "1:47",
            Code.PARAMETER_VALUE,
            "`name` is one of x, y",
            "quotes",
        ),
        ("rank candidates by choosy(penalty = 3, penalty = 3);", "1:40", Code.TWICE, "`penalty` occurs twice", ""),
        ("rank candidates by round_robin(), choosy(penalty = 3);", "1:35", Code.TWICE, "has at most one part", ""),
        ("rank neighbors by least $load;", "1:19", Code.MEANING, "takes one part, and no keys", "most_waiting"),
        ("rank neighbors by most_waiting(), random;", "1:19", Code.MEANING, "takes one part, and no keys", ""),
        ("rank candidates by broken();", "1:20", Code.UNKNOWN_PART, "`broken` is not a part", "b 1.0 cannot be used"),
        ("allocate by as_asked(); allocate by as_asked();", "1:25", Code.TWICE, "`allocate` occurs twice", ""),
    ],
)
def test_a_mistake_in_a_part_is_reported_at_its_position(
    text: str, place: str, code: Code, message: str, hint: str
) -> None:
    catalogue = Catalogue(find=lambda: Found(parts=(CHOOSY,), broken={"broken": "b 1.0 cannot be used: ..."}))
    with pytest.raises(PolicyError) as refused:
        parse_policy(text, file="a.policy", catalogue=catalogue)
    problem = refused.value.problems[0]
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code)
    assert message in problem.message
    assert hint in problem.hint


def test_installed_parts_are_looked_up_only_when_a_part_is_named() -> None:
    def find() -> Found:
        raise AssertionError("nobody has named a part")

    catalogue = Catalogue(find=find)
    parse_policy(
        "advertise every 3s or after change of 5% { } rank candidates by random;", file="a", catalogue=catalogue
    )
    with pytest.raises(AssertionError, match="nobody has named"):
        parse_policy("allocate by as_asked();", file="a", catalogue=catalogue)


@pytest.mark.parametrize("head", ["every 30s by key_changes(share = 12.5%)", "every 30s or after change of 12.5%"])
def test_the_share_of_a_change_is_one_part_in_either_form(head: str) -> None:
    rules = policy(f"advertise {head} {{ }}")
    assert rules.update == key_changes(1250)
    assert rules.timeouts.update_period_ns == 30 * 10**9


def test_the_default_by_name_asks_like_the_default() -> None:
    query = ranking(candidate("many", {"free_slots": 8}), candidate("few", {"free_slots": 2}), candidate("full"))
    named = policy("rank candidates by weighted_free_slots();")
    for draw in range(20):
        draws = (draw, draw * 7, draw * 3)
        assert ranked(named, query, Draws(*draws)) == ranked(policy(""), query, Draws(*draws))
    assert policy("rank tasks by arrival();").selection.keeps_arrival


def test_candidates_that_are_equal_by_a_key_stand_in_the_order_of_the_part() -> None:
    rules = policy('rank candidates by first where $cand.relation eq "child", round_robin();')
    query = ranking(*(candidate(name) for name in "cab"))
    order, state = rules.location.decide(query, (("a",),), Draws())
    assert (order, state) == (("b", "c", "a"), (("b",),))


def test_parts_are_listed_with_parameters_and_whether_they_are_defaults() -> None:
    rules = policy("advertise every 1s by key_changes(share = 5%) { } rank candidates by random, round_robin();")
    assert [(each.kind.value, each.text, each.is_default) for each in parts_of(rules)] == [
        ("advertise", "key_changes(share = 5%)", False),
        ("rank candidates", "round_robin()", False),
        ("rank neighbors", "most_waiting()", True),
        ("rank tasks", "arrival()", True),
        ("migrate", "least_run()", True),
        ("allocate", "as_asked()", True),
    ]
    assert [each.kind.value for each in parts_of(policy("rank candidates by random; rank tasks by random;"))] == [
        "advertise",
        "rank neighbors",
        "migrate",
        "allocate",
    ]


def test_a_part_is_written_without_a_gap_before_its_parentheses() -> None:
    written = "advertise every 1s by key_changes ( share=05% ) { }\nrank candidates by round_robin ();\n"
    formatted = "advertise every 1s by key_changes(share = 5%) { }\nrank candidates by round_robin();\n"
    assert format_policy(written, file="a") == formatted
    assert format_policy(formatted, file="a") == formatted


def test_a_part_remembers_from_one_expectation_of_a_trial_to_the_next() -> None:
    steps = f'{TURNS} expect rank "a", "b"; expect rank "b", "a"; expect rank "a", "b";'
    assert came(steps, "rank candidates by round_robin();") == []
    alone = f'{TURNS} expect rank "b", "a";'
    assert came(alone, "rank candidates by round_robin();") == [('expect rank "b", "a"', '"a", "b"')]


def test_an_order_fails_with_the_part_among_its_keys_and_the_other_keys_still_count() -> None:
    @dataclass(frozen=True, slots=True)
    class Broken:
        """Raises."""

        initial: PartState = (("kept", 1),)

        def decide(self, query: object, state: PartState, randomness: Randomness, /) -> tuple[object, PartState]:
            """Raise."""
            del query, randomness
            raise KeyError(state[0][0])

    def declared(kind: PartKind) -> DeclaredPart:
        return DeclaredPart(kind=kind, name="bad", meaning="", make=lambda: Guarded(kind, Broken(), Broken().initial))

    parts = (declared(PartKind.LOCATION), declared(PartKind.SELECTION))
    text = "rank candidates by least $load, bad(); rank tasks by most $task.waited, bad();"
    rules = parse_policy(text, file="a", catalogue=Catalogue(find=lambda: Found(parts=parts)))
    query = ranking(candidate("a", {"load": 900}), candidate("b", {"load": 100}))
    tasks = TaskOrderQuery(tasks=({"waited": 1}, {"waited": 9}), here={}, now=NOON)
    assert rules.location.decide(query, rules.location.initial, Draws(1)) == (
        Failed(instead=("b", "a"), why="KeyError: 'kept'; weighted_free_slots() decides"),
        (("kept", 1),),
    )
    assert rules.selection.decide(tasks, rules.selection.initial, Draws()) == (
        Failed(instead=(1, 0), why="KeyError: 'kept'; tasks stay in the order in which they came"),
        (("kept", 1),),
    )


def test_a_trial_fails_with_the_part_that_fails_even_if_its_substitute_gives_the_expected_order() -> None:
    @dataclass(frozen=True, slots=True)
    class Broken:
        """Raises."""

        initial: PartState = ()

        def decide(self, query: object, state: PartState, randomness: Randomness, /) -> tuple[object, PartState]:
            """Raise."""
            del query, state, randomness
            raise KeyError("x")

    kind = PartKind.LOCATION
    bad = DeclaredPart(kind=kind, name="bad", meaning="", make=lambda: Guarded(kind, Broken(), ()))
    catalogue = Catalogue(find=lambda: Found(parts=(bad,)))
    file = read_trials(
        f'policy "a"; test "t" {{ peer {{ name = "a"; }} {TURNS} expect rank "b", "a"; expect accept; }}',
        file="a.policytest",
        policy_of=lambda name: parse_policy(
            "accept from any { } rank candidates by bad();", file=name, catalogue=catalogue
        ),
    )
    (outcome,) = try_out(file)
    why = "the part fails: KeyError: 'x'; weighted_free_slots() decides"
    assert [failure.came for failure in outcome.failures] == [f'"b", "a", but {why}']
