"""Entry point for `*.policytest` files: a text in, trials of a policy out, or every mistake of the file at once.

Words, quantities and comments are those of policy files. Statements before the first test apply to every test.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

from lark import Lark, Token

from messiahs.errors import PolicyError
from messiahs.language.policytest.expectation_kinds import Expectation
from messiahs.language.policytest.expectations import expectation_rules, expected_words, read_expectation
from messiahs.language.policytest.phrases import Phrase, phrases_of
from messiahs.language.policytest.stated_values import Statement
from messiahs.language.policytest.statements import NAMED_TASK_RULE, STATEMENTS, Scene
from messiahs.language.policytest.trials import Step, Trial, TrialFile
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.source_places import quoted
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.syntax.parsing import on_one_line, parse_statement, tokens_in_tree
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.scanning import BAD, is_too_long, tokens_in

PolicyOf = Callable[[str], CompiledPolicy]
"""Returns the policy with a name, next to the test file; raises PolicyError."""

_WORDS: Final = ("test", *(word.lower() for word in STATEMENTS), "expect")
KEYWORDS: Final = frozenset((*_WORDS, "policy", *(word.lower() for word in expected_words())))


@dataclass(slots=True)
class _File:
    """The parts of a file that have been read (mutable)."""

    scene: Scene
    background: list[Step] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


def read_trials(text: str, /, *, file: str, policy_of: PolicyOf) -> TrialFile:
    """Return the trials in a text; raises PolicyError with all of its mistakes, or with those of the policy."""
    notebook = Notebook(file=file, text=text)
    if is_too_long(notebook):
        raise PolicyError(notebook.in_order())
    end = Token("$END", "", start_pos=len(text.rstrip()), end_pos=len(text.rstrip()))
    phrases = phrases_of([*tokens_in(notebook, keywords=KEYWORDS), end], notebook)
    name = _policy_name(phrases, notebook)
    policy = CompiledPolicy() if name is None else policy_of(name)
    read = _File(Scene(notebook=notebook, grammar=trial_grammar, policy=policy))
    for phrase in phrases:
        _read_top(phrase, read)
    problems = tuple(problem for problem in notebook.in_order() if not problem.is_warning)
    if problems:
        raise PolicyError(problems)
    assert name is not None, "a file without a policy has a problem"
    return TrialFile(policy_name=name, policy=policy, trials=tuple(read.trials))


@cache
def trial_grammar() -> Lark:
    """Return the grammar of the phrases of test files."""
    starts = ["policy", "test", "expect", NAMED_TASK_RULE, *sorted({kind.rule for kind in STATEMENTS.values()})]
    own = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(f"{own}{expectation_rules()}", parser="lalr", lexer="basic", start=starts)


def _policy_name(phrases: tuple[Phrase, ...], notebook: Notebook) -> str | None:
    first = phrases[0] if phrases else None
    if first is None or first.word.type != "POLICY":
        token = first.word if first is not None else Token(BAD, "", start_pos=0, end_pos=0)
        hint = 'begin with: policy "desktop.policy";'
        notebook.error(token, Code.MEANING, "the file does not name the policy that it tests", hint=hint)
        return None
    tree = parse_statement(first.head, "policy", notebook, grammar=trial_grammar)
    return None if tree is None else unescaped(tokens_in_tree(tree, "TEXT")[0])


def _read_top(phrase: Phrase, read: _File) -> None:
    notebook = read.scene.notebook
    match phrase.word.type:
        case "POLICY":
            if phrase.word.start_pos != 0 and (read.background or read.trials):
                notebook.error(phrase.word, Code.MEANING, "`policy` must be at the top of the file")
        case "TEST":
            _read_test(phrase, read)
        case "EXPECT":
            notebook.error(phrase.word, Code.MEANING, "`expect` must be in a test", hint='write test "..." {...}')
        case _:
            read.background += _steps(phrase, read.scene)


def _read_test(phrase: Phrase, read: _File) -> None:
    notebook = read.scene.notebook
    tree = parse_statement(phrase.head, "test", notebook, grammar=trial_grammar)
    if phrase.body is None:
        notebook.error(phrase.head.end, Code.SYNTAX, "`test` needs a block", hint="write { ... }")
    scene = read.scene.copy()
    steps = [step for each in phrase.body or () for step in _steps(each, scene)]
    if tree is None or phrase.body is None:
        return
    (token,) = tokens_in_tree(tree, "TEXT")
    name = unescaped(token)
    if any(trial.name == name for trial in read.trials):
        notebook.error(token, Code.TWICE, f"there is already a test {token}")
    if not any(each.word.type == "EXPECT" for each in _all_in(phrase)):
        notebook.error(phrase.word, Code.MEANING, "this test has no `expect`", hint="write expect accept;")
    start = phrase.word.start_pos or 0
    read.trials.append(Trial(name=name, start=start, steps=(*read.background, *steps)))


def _steps(phrase: Phrase, scene: Scene) -> list[Step]:
    """Read one phrase of a test; a wait is followed by the statements in its block."""
    word = phrase.word
    if word.type == "EXPECT":
        expected = read_expectation(phrase, scene)
        return [] if expected is None else [_step(phrase, expected)]
    if word.type not in STATEMENTS:
        if word.type != BAD:
            hint = nearest(word, _WORDS) or f"a test is made of {', '.join(_WORDS[1:])}"
            scene.notebook.error(word, Code.SYNTAX, f"{quoted(word)} cannot begin a statement here", hint=hint)
        return []
    said = STATEMENTS[word.type].read(phrase, scene)
    steps = [] if said is None else [_step(phrase, said)]
    if word.type == "AFTER":
        steps += [step for each in phrase.body or () for step in _steps(each, scene)]
    return steps


def _step(phrase: Phrase, what: Statement | Expectation) -> Step:
    return Step(start=phrase.word.start_pos or 0, text=on_one_line(phrase.head.words), what=what)


def _all_in(phrase: Phrase) -> list[Phrase]:
    return [phrase, *(below for each in phrase.body or () for below in _all_in(each))]
