"""What a policy says of how tasks run on its own machine: checked when the policy is to be in force there."""

import os
from collections.abc import Iterator

from messiahs.config.settings import BUBBLEWRAP, OUTBOUND, SANDBOX, MachineSettings, ModuleSettings
from messiahs.core.interface.parts import Policy
from messiahs.core.model.terms import narrower_of
from messiahs.errors import PolicyError, Problem
from messiahs.executor.linux.local_accounts import account_for_tasks
from messiahs.executor.os_process.launch import programs_path
from messiahs.executor.starter.sandbox.outbound import why_no_outbound
from messiahs.language.runtime.accept_rules import Mapping, NetworkLimit
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.syntax.problems import Code

_NO_SANDBOX = "tasks run as an account of the host only in sandboxes, in which that is all they have of it"
_WHERE = "write `isolation: sandbox` in the `machine` of this system, and run its module as root"
_WHO = "create it, or name another account that has few rights and that nobody else has"
_NO_OWN_NETWORK = "the network of tasks can be limited only in sandboxes: processes have that of the host"
_WHERE_NETWORK = "write `isolation: sandbox` (for a module of root) or `bubblewrap` in the `machine` of this system"


def check_terms(policy: Policy, settings: ModuleSettings) -> None:
    """Raise PolicyError if the machine of these settings cannot run tasks as the policy says.

    Without a machine no task runs here, whatever a policy for several systems says.
    """
    if settings.machine is None or not isinstance(policy, CompiledPolicy):
        return
    problems = [
        *(_problem(policy, *found) for found in _of_accounts(policy, settings.machine)),
        *(_problem(policy, *found) for found in _of_networks(policy, settings.machine)),
    ]
    if problems:
        raise PolicyError(tuple(problems))


def _of_accounts(policy: CompiledPolicy, machine: MachineSettings) -> Iterator[tuple[Mapping, str, str]]:
    """Yield each account that no task can have, with why and a hint."""
    for mapping in policy.acceptance.mappings:
        account = account_for_tasks(mapping.account, others=(machine.task_uids,))
        if not _has_own_sandboxes(machine):
            yield mapping, _NO_SANDBOX, _WHERE
        elif isinstance(account, str):
            yield mapping, f"no task can run as {mapping.account}: {account}", _WHO


def _of_networks(policy: CompiledPolicy, machine: MachineSettings) -> Iterator[tuple[NetworkLimit, str, str]]:
    """Yield each network to which tasks cannot be limited, with why and a hint."""
    for limit in policy.acceptance.network_limits:
        if machine.isolation != BUBBLEWRAP and not _has_own_sandboxes(machine):
            yield limit, _NO_OWN_NETWORK, _WHERE_NETWORK
        elif narrower_of(limit.network, machine.network) != limit.network:
            message = f"tasks on this machine reach `{machine.network}` at most, and a policy gives them no more"
            hint = f"limit them to that or less, or write `network: {limit.network}` in the `machine` of this system"
            yield limit, message, hint
        elif limit.network == OUTBOUND and (problem := why_no_outbound(programs_path(os.geteuid()))):
            yield limit, problem, "limit them to loopback or none until then"


def _has_own_sandboxes(machine: MachineSettings) -> bool:
    return machine.isolation == SANDBOX and os.geteuid() == 0


def _problem(policy: CompiledPolicy, rule: Mapping | NetworkLimit, message: str, hint: str) -> Problem:
    file, text = (policy.source.file, policy.source.text) if policy.source is not None else ("", "")
    before = text[: rule.start]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Problem(code=Code.MEANING, file=file, line=line, column=column, message=message, hint=hint)
