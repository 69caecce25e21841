"""Checks of the policy in force, and of the module's own file if another one replaces it. None needs the daemon."""

from collections.abc import Iterator
from pathlib import Path

from messiahs.cli.doctor.findings import Finding, Patient, fail, ok, warn
from messiahs.config.policies import PolicySource, policy_source
from messiahs.config.settings import ModuleSettings
from messiahs.core.interface.policies import Timeouts
from messiahs.daemon.policies.kept import KEPT, kept_in
from messiahs.daemon.policies.terms import check_terms
from messiahs.errors import PolicyError, Problem
from messiahs.language.runtime.compiled_policy import CompiledPolicy


def check_policy(patient: Patient) -> Iterator[Finding]:
    """Check the policy in force with all warnings, and whether the own machine can run tasks as it says."""
    settings = patient.settings
    timeouts = Timeouts(update_period_ns=settings.update_period_ns, lease_ns=settings.lease_ns)
    try:
        source, _ = kept_in(settings.directory, timeouts=timeouts)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        text = f"the policy in {settings.directory / KEPT} cannot be used: {error}"
        yield fail("policy", f"{text}: load it again, or return to the own file with `messiahs policy load`")
    else:
        yield warn("policy", _loaded(source, own_file=settings.policy_file))
        yield from _judged(source, settings)
        if settings.policy_file is None:
            return
    if settings.policy_file is None:
        yield warn("policy", "there is none, so everybody is accepted: name a file with `policy:` in the topology")
        return
    try:
        own = policy_source(settings.policy_file, timeouts=timeouts)
    except PolicyError as error:
        yield fail("policy", _line_of(error.problems[0]))
        return
    yield from _judged(own, settings)


def _loaded(source: PolicySource, *, own_file: Path | None) -> str:
    if own_file is None:
        return f"{source.file}, which `policy load` loaded, is in force: name it with `policy:` in the topology"
    text = f"{source.file}, which `policy load` put in place of the own file, is in force"
    return f"{text}: copy it into the file, and return to that with `messiahs policy load`"


def _judged(source: PolicySource, settings: ModuleSettings) -> Iterator[Finding]:
    try:
        policy = source.policy()
    except PolicyError as error:
        text = _line_of(error.problems[0])
        yield fail("policy", f"{text}: `messiahs policy check {source.file}` lists all problems")
        return
    try:
        check_terms(policy, settings)
    except PolicyError as error:
        for each in error.problems:
            yield fail("policy", f"{_line_of(each)}: {each.hint}")
        return
    warnings = policy.warnings if isinstance(policy, CompiledPolicy) else ()
    for each in warnings:
        yield warn("policy", _line_of(each))
    if not warnings:
        yield ok("policy", f"{source.file} has no problems")


def _line_of(problem: Problem) -> str:
    return str(problem).partition("\n")[0]
