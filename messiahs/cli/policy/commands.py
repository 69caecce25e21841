"""`messiahs policy …`: check policy files, try predicates, list the attributes."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from messiahs.cli.exit_codes import USAGE
from messiahs.cli.options import JSON, MODULE, STATE, attribute_value
from messiahs.cli.output import print_document, print_table
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
_SET = click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Give $NAME a value.")
_TASK, _HERE, _PEER = (
    click.option(f"--{scope}", multiple=True, metavar="NAME=VALUE|FILE|-", help=f"What is stated of {whom}.")
    for scope, whom in (("task", "the task"), ("here", "the own machine"), ("peer", "who asks"))
)


def _moment(text: str) -> "datetime":
    from datetime import datetime

    try:
        return datetime.fromisoformat(text if "-" in text else f"{datetime.now().astimezone().date()} {text}")
    except ValueError as error:
        raise click.BadParameter("write a date and a time, as in '2026-11-21 22:30'") from error


@click.group()
def policy() -> None:
    """Check and format policy files, try predicates, and let running modules follow other policies."""


policy.add_command(fmt)
policy.add_command(load)
policy.add_command(diff)


@policy.command()
@_FILES
@JSON
def check(files: tuple[Path, ...], *, as_json: bool) -> int:
    """Check every FILE and tell all problems with line and column; 1 if one of them is an error.

    docs/policy-problems.md has a section for each code, as P204: what it means, and an example with its remedy.
    """
    found = {file: _problems_in(file) for file in files}
    problems = [problem for each in found.values() for problem in each]
    if as_json:
        print_document({"problems": [problem.facts() for problem in problems]})
    for file, each in () if as_json else found.items():
        for problem in each:
            click.echo(str(problem), err=True)
        click.echo(f"{file}: {_count(each)}")
    return 0 if all(problem.is_warning for problem in problems) else 1


def _problems_in(file: Path) -> "tuple[Problem, ...]":
    from messiahs.config.policies import read_policy

    try:
        return read_policy(file).warnings
    except PolicyError as error:
        return error.problems


def _count(problems: "tuple[Problem, ...]") -> str:
    warnings = sum(problem.is_warning for problem in problems)
    errors = len(problems) - warnings
    told = [f"{count} {word}{'s' * (count > 1)}" for count, word in ((errors, "error"), (warnings, "warning")) if count]
    return ", ".join(told) or "no problems"


# A predicate may begin with a minus sign; what is no option of ours is one.
@policy.command(name="eval", context_settings={"ignore_unknown_options": True})
@click.argument("predicate")
@_SET
@JSON
def evaluate(predicate: str, *, assignments: tuple[str, ...], as_json: bool) -> int:
    """Judge PREDICATE, as on the wire: true (0) or false (1); 2 if it is none.

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
        click.echo("true" if result else "false")
    return 0 if result else 1


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
@_TASK
@_HERE
@_PEER
@click.option("--at", "moment", type=_moment, metavar="TIME", help="Local time: '2026-11-21 22:30', or 22:30 [now].")
@click.option("--pool", type=click.Path(path_type=Path), metavar="FILE", help="Machines: what `module vectors` wrote.")
@click.option("--views", is_flag=True, help="Machines: those of which a running module knows.")
@MODULE
@STATE
@JSON
def explain(file: Path, *, as_json: bool, **options: Unpack["ExplainOptions"]) -> None:
    """Say for each rule of FILE what it makes of a task: every comparison, the values found, and what is against it.

    --task, --here and --peer take NAME=VALUE in the words of policy files (mem=4GiB, est_time=2h, load=30%), or a file
    with one in each line; `-` is standard input. --task also takes what `messiahs status ID --json` printed.

    Without --peer every `accept` block is explained, with it also `join`; with something that is known of tasks that
    are here only (ran=2h, suspended=5min) also `running` and `migrate`.

    With --pool FILE (as written by `module vectors --json`) or --views also in which order neighbors are asked, how
    many machines the task could have, what loses the others, and the nearest change with which there would be more.
    Without --peer a child asks.
    """
    from messiahs.cli.policy.explanation import policy_document, show_blocks, show_orders, show_parts, text_of
    from messiahs.cli.policy.pool import explained_pool, known_of, pool_document, show_pool
    from messiahs.cli.policy.situation import asked_of, explained_blocks, explained_orders
    from messiahs.config.policies import read_policy

    known = known_of(options)
    # What is stated is read by the words of the policy, and its mistakes are of the same kind.
    with problems_as_json(as_json=as_json):
        rules = read_policy(file)
        asked = asked_of(rules, options, known.pools)
    blocks = explained_blocks(rules, asked, options)
    orders = explained_orders(rules, asked, known.neighbors)
    found = explained_pool(rules, asked, known.pools) if known.pools else None
    text = text_of(rules)
    if as_json:
        told = {} if found is None else {"pool": pool_document(found)}
        print_document({**policy_document(file, rules, blocks, orders), **told})
        return
    show_blocks(file, text, blocks)
    show_orders(file, text, orders)
    show_parts(file, rules)
    if found is not None:
        show_pool(found)


@policy.command()
@click.argument("files", metavar="[FILE.policytest...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--coverage", "with_coverage", is_flag=True, help="List the rules that were not seen true and false.")
@JSON
def test(files: tuple[Path, ...], *, with_coverage: bool, as_json: bool) -> int:
    """Try policies with the tests in FILE, or in every *.policytest here; 1 if something is not as expected.

    A failure comes with the rules that were judged. With --coverage 1 also if a rule was not seen both ways. A mistake
    in a file ends it with 1, too; with --json its `problems` are all that is printed.
    """
    from messiahs.cli.policy.trials import test_policies

    with problems_as_json(as_json=as_json):
        return test_policies(files, with_coverage=with_coverage, as_json=as_json)


@policy.command()
@JSON
def schema(*, as_json: bool) -> None:
    """List the attributes that policies and predicates may name."""
    from messiahs.core.model.attributes import CATALOGUE, SEEN_BY_THE_OWNER
    from messiahs.language.compiler.schema import facts_of, range_shown, spellings_of

    attributes = (*CATALOGUE, *SEEN_BY_THE_OWNER)
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
