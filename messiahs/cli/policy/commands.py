"""`messiahs policy …`: check policy files, try predicates, list the attributes."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from messiahs.cli.exit_codes import USAGE
from messiahs.cli.options import JSON, MODULE, STATE, attribute_value
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.cli.policy.diff import diff
from messiahs.cli.policy.fmt import fmt
from messiahs.cli.policy.load import load
from messiahs.cli.policy.problems import problems_as_json
from messiahs.errors import ClientError, PolicyError, PredicateError

if TYPE_CHECKING:
    from datetime import datetime

    from messiahs.cli.policy.pool import ExplainOptions
    from messiahs.errors import Problem

_FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
_SET = click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Value of $NAME.")
_TASK, _HERE, _PEER = (
    click.option(f"--{scope}", multiple=True, metavar="NAME=VALUE|FILE|-", help=f"Attributes of {subject}.")
    for scope, subject in (("task", "the task"), ("here", "the module's machine"), ("peer", "the asking neighbor"))
)


def _moment(text: str) -> "datetime":
    from datetime import datetime

    try:
        return datetime.fromisoformat(text if "-" in text else f"{datetime.now().astimezone().date()} {text}")
    except ValueError as error:
        raise click.BadParameter("expected a date and a time, such as '2026-11-21 22:30'") from error


@click.group()
def policy() -> None:
    """Check, format, explain and test policies, evaluate predicates, and load policies into running modules."""


policy.add_command(fmt)
policy.add_command(load)
policy.add_command(diff)


@policy.command()
@_FILES
@click.option(
    "--topology",
    "topology_file",
    type=click.Path(path_type=Path),
    help="Whose machines and policies report attributes: such a declaration is no problem if it is not used (P412).",
)
@JSON
def check(files: tuple[Path, ...], *, topology_file: Path | None, as_json: bool) -> int:
    """Check every FILE and list all problems with line and column; exit with 1 if one of them is an error.

    docs/policy-problems.md has a section for each code, such as P204: its meaning, an example and its remedy.
    """
    reported = _reported_in(topology_file)
    found = {file: _problems_in(file, reported) for file in files}
    problems = [problem for each in found.values() for problem in each]
    if as_json:
        print_document({"problems": [problem.facts() for problem in problems]})
    for file, each in () if as_json else found.items():
        for problem in each:
            print_text(str(problem), err=True)
        print_text(f"{file}: {_count(each)}")
    return 0 if all(problem.is_warning for problem in problems) else 1


def _reported_in(topology_file: Path | None) -> "set[str]":
    if topology_file is None:
        return set()
    from messiahs.config.topology.fields import reported_names
    from messiahs.config.topology.reading import load_topology

    return reported_names(load_topology(topology_file))


def _problems_in(file: Path, reported: "set[str]") -> "tuple[Problem, ...]":
    """Return the problems of a file, but for unused declarations of attributes that are reported."""
    from messiahs.config.policies import read_policy
    from messiahs.language.syntax.problems import Code

    try:
        found = read_policy(file).warnings
    except PolicyError as error:
        found = error.problems
    declared = {f"${name}" for name in reported}
    return tuple(each for each in found if each.code != Code.UNUSED or _marked_in(each) not in declared)


def _marked_in(problem: "Problem") -> str:
    return problem.source[problem.column - 1 :][: problem.width]


def _count(problems: "tuple[Problem, ...]") -> str:
    warnings = sum(problem.is_warning for problem in problems)
    errors = len(problems) - warnings
    counts = [
        f"{count} {word}{'s' * (count > 1)}" for count, word in ((errors, "error"), (warnings, "warning")) if count
    ]
    return ", ".join(counts) or "no problems"


# A predicate may begin with a minus sign, so an unknown option is a predicate.
@policy.command(name="eval", context_settings={"ignore_unknown_options": True})
@click.argument("predicate")
@_SET
@JSON
def evaluate(predicate: str, *, assignments: tuple[str, ...], as_json: bool) -> int:
    """Evaluate PREDICATE as modules do: exit with 0 if true, 1 if false, 2 if it is not a predicate.

    --set NAME=VALUE takes an integer, or else a string; --set 'NAME:="5"' takes a literal of the language.
    """
    from messiahs.language.predicate.predicates import parse_predicate

    description = dict(attribute_value(text) for text in assignments)
    try:
        parsed = parse_predicate(predicate)
    except PredicateError as error:
        raise ClientError(str(error), code=USAGE) from error
    result = parsed.holds(description)
    if as_json:
        print_document({"result": result, "unset": list(parsed.unset_in(description))})
    else:
        print_text("true" if result else "false")
    return 0 if result else 1


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
@_TASK
@_HERE
@_PEER
@click.option("--at", "moment", type=_moment, metavar="TIME", help="Local time: '2026-11-21 22:30', or 22:30 [now].")
@click.option("--pool", type=click.Path(path_type=Path), metavar="FILE", help="Machines: output of `module vectors`.")
@click.option("--views", is_flag=True, help="Machines: those known to a running module.")
@MODULE
@STATE
@JSON
def explain(file: Path, *, as_json: bool, **options: Unpack["ExplainOptions"]) -> None:
    """Evaluate every rule of FILE for a task: each comparison, the values found, and the comparisons that fail.

    --task, --here and --peer take NAME=VALUE as in policy files (mem=4GiB, est_time=2h, load=30%), or a file with one
    per line; `-` is standard input. --task also takes the output of `messiahs status ID --json`.

    Explains every `accept` block; with --peer also `join`, and with an attribute that only a task on the machine has
    (ran=2h, suspended=5min) also `running` and `migrate`.

    With --pool FILE (written by `module vectors --json`) or --views, also shows the order in which neighbors are asked,
    how many machines match the task, why the others do not, and the smallest changes that would add machines. Without
    --peer a child asks.
    """
    from messiahs.cli.policy.explanation import policy_document, show_blocks, show_orders, show_parts, text_of
    from messiahs.cli.policy.pool import explained_pool, known_of, pool_document, show_pool
    from messiahs.cli.policy.situation import explained_blocks, explained_orders, request_to_explain
    from messiahs.config.policies import read_policy

    known = known_of(options)
    # Attributes are written as in the policy, and their mistakes are policy problems.
    with problems_as_json(as_json=as_json):
        rules = read_policy(file)
        asked = request_to_explain(rules, options, known.pools)
    blocks = explained_blocks(rules, asked, options)
    orders = explained_orders(rules, asked, known.neighbors)
    found = explained_pool(rules, asked, known.pools) if known.pools else None
    text = text_of(rules)
    if as_json:
        counts = {} if found is None else {"pool": pool_document(found)}
        print_document({**policy_document(file, rules, blocks, orders), **counts})
        return
    show_blocks(file, text, blocks)
    show_orders(file, text, orders)
    show_parts(file, rules)
    if found is not None:
        show_pool(found)


@policy.command()
@click.argument("files", metavar="[FILE.policytest...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--coverage", "with_coverage", is_flag=True, help="List rules that were not both true and false.")
@JSON
def test(files: tuple[Path, ...], *, with_coverage: bool, as_json: bool) -> int:
    """Run the tests in FILE, or in every *.policytest here; exit with 1 if one of them fails.

    A failure lists the rules that were evaluated. With --coverage, also exits with 1 if a rule was not both true and
    false. A mistake in a file exits with 1 as well; with --json only its `problems` are printed.
    """
    from messiahs.cli.policy.trials import test_policies

    with problems_as_json(as_json=as_json):
        return test_policies(files, with_coverage=with_coverage, as_json=as_json)


@policy.command()
@JSON
def schema(*, as_json: bool) -> None:
    """List the attributes that policies and predicates can use."""
    from messiahs.core.model.attributes import CATALOGUE, SEEN_BY_THE_OWNER, WELL_KNOWN
    from messiahs.language.compiler.schema import facts_of, range_shown, spellings_of

    attributes = (*CATALOGUE, *WELL_KNOWN, *SEEN_BY_THE_OWNER)
    if as_json:
        print_document({"attributes": [facts_of(each) for each in attributes]})
        return
    rows = [
        (
            " ".join(spellings_of(each)),
            each.kind,
            each.unit,
            range_shown(each),
            each.supplier,
            "may be unset" if each.is_optional else "",
            each.meaning,
        )
        for each in attributes
    ]
    print_table(("WRITTEN", "TYPE", "UNIT", "RANGE", "FROM", "OPTIONAL", "MEANING"), rows)
