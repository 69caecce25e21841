"""`messiahs policy test`: run `*.policytest` files, and list rules that they do not cover."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from messiahs.cli.output import print_document, print_text
from messiahs.cli.policy.explanation import block_document, block_lines, line_of, text_of
from messiahs.client.connection import Document
from messiahs.config.policies import policy_text, read_policy
from messiahs.errors import ClientError, PolicyError
from messiahs.language.explaining.coverage import Sighting, Unseen, unseen_rules
from messiahs.language.policytest.execution import Failure, Outcome, try_out
from messiahs.language.policytest.files import read_trials
from messiahs.language.runtime.compiled_policy import CompiledPolicy

_ENDING = "*.policytest"
_POLICY_SUFFIX = ".policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """A test file, its policy, and the results of its tests."""

    file: Path
    text: str
    policy_file: Path
    policy: CompiledPolicy
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Uncovered:
    """The text of a policy, and the rules that were not both true and false."""

    text: str
    rules: tuple[Unseen, ...]


def test_policies(files: tuple[Path, ...], *, with_coverage: bool, as_json: bool) -> int:
    """Run and print every file, or all files here; returns the exit code. Raises PolicyError for mistakes in a file."""
    chosen = files or tuple(sorted(Path().glob(_ENDING)))
    if not chosen:
        raise ClientError(f"no {_ENDING} in this folder: name the files")
    tried = [_tried(file) for file in chosen]
    unseen = _unseen_in(tried) if with_coverage else {}
    if as_json:
        documents = [_document(each) for each in tried]
        print_document({"files": documents, **({"coverage": _coverage(unseen)} if with_coverage else {})})
    else:
        _show(tried, unseen, with_coverage=with_coverage)
    has_failed = any(outcome.failures for each in tried for outcome in each.outcomes)
    return 1 if has_failed or any(left.rules for left in unseen.values()) else 0


def _tried(file: Path) -> _Tried:
    text = policy_text(file)
    try:
        trials = read_trials(text, file=str(file), policy_of=lambda name: read_policy(file.parent / name))
    except PolicyError:
        if file.suffix == _POLICY_SUFFIX:
            print_text(f"{file} is not a test file; `messiahs policy check {file}` checks policies", err=True)
        raise
    policy_file = file.parent / trials.policy_name
    return _Tried(file=file, text=text, policy_file=policy_file, policy=trials.policy, outcomes=try_out(trials))


def _unseen_in(tried: Iterable[_Tried]) -> dict[Path, _Uncovered]:
    """Return, for each policy, the rules that no test of any file saw both true and false."""
    seen: dict[Path, set[Sighting]] = {}
    policies: dict[Path, CompiledPolicy] = {}
    for each in tried:
        policies[each.policy_file] = each.policy
        seen.setdefault(each.policy_file, set()).update(*(outcome.seen for outcome in each.outcomes))
    return {
        file: _Uncovered(text=text_of(policy), rules=unseen_rules(policy, seen[file]))
        for file, policy in policies.items()
    }


def _show(tried: list[_Tried], unseen: dict[Path, _Uncovered], *, with_coverage: bool) -> None:
    for each in tried:
        rules_text = text_of(each.policy)
        for outcome in each.outcomes:
            print_text(f"{each.file}: {outcome.trial.name}: {'failed' if outcome.failures else 'ok'}")
            for failure in outcome.failures:
                _show_failure(failure, each, rules=rules_text)
    count = sum(len(each.outcomes) for each in tried)
    failed = sum(bool(outcome.failures) for each in tried for outcome in each.outcomes)
    print_text(f"{count} {'test' if count == 1 else 'tests'}, {f'{failed} failed' if failed else 'all ok'}")
    for file, left in unseen.items():
        for missed in left.rules:
            never = " or ".join("true" if value else "false" for value in missed.never)
            print_text(f"{file}:{line_of(left.text, missed.rule.start)}: never {never}: {missed.rule.text}")
    if with_coverage and not any(left.rules for left in unseen.values()):
        print_text("every rule was both true and false")


def _show_failure(failure: Failure, tried: _Tried, *, rules: str) -> None:
    print_text(f"  {tried.file}:{line_of(tried.text, failure.step.start)}: {failure.step.text}: {failure.came}")
    for block in failure.blocks:
        for line in block_lines(block, tried.policy_file, text=rules):
            print_text(f"    {line}")


def _document(tried: _Tried) -> Document:
    rules = text_of(tried.policy)
    tests = [
        {
            "name": outcome.trial.name,
            "line": line_of(tried.text, outcome.trial.start),
            "ok": not outcome.failures,
            "failures": [
                {
                    "line": line_of(tried.text, failure.step.start),
                    "expected": failure.step.text,
                    "came": failure.came,
                    "blocks": [block_document(block, rules) for block in failure.blocks],
                }
                for failure in outcome.failures
            ],
        }
        for outcome in tried.outcomes
    ]
    return {"file": str(tried.file), "policy": str(tried.policy_file), "tests": tests}


def _coverage(unseen: dict[Path, _Uncovered]) -> list[Document]:
    return [
        {"policy": str(file), "unseen": [_missed(each, left.text) for each in left.rules]}
        for file, left in unseen.items()
    ]


def _missed(unseen: Unseen, text: str) -> Document:
    line = line_of(text, unseen.rule.start)
    return {"line": line, "rule": unseen.rule.text, "never": list(unseen.never)}
