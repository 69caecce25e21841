"""Accounts of this host that a policy names for tasks: checked when the policy is to be in force at its machine."""

import os
from contextlib import suppress

from messiahs.config.settings import SANDBOX, ModuleSettings
from messiahs.core.interface.parts import Policy
from messiahs.errors import ExecutorError, PolicyError, Problem
from messiahs.executor.linux.local_accounts import Ranges, account_for_tasks
from messiahs.executor.protocol.layout import task_account
from messiahs.language.runtime.accept_rules import Mapping
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.syntax.problems import Code

_NO_SANDBOX = "tasks run as an account of the host only in sandboxes, in which that is all they have of it"
_WHERE = "write `isolation: sandbox` in the `machine` of this system, and run its module as root"
_WHO = "create it, or name another account that has few rights and that nobody else has"


def check_accounts(policy: Policy, settings: ModuleSettings) -> None:
    """Raise PolicyError if the machine of these settings cannot run tasks as an account that the policy names.

    Without a machine no task runs here, whatever a policy for several systems names.
    """
    if settings.machine is None or not isinstance(policy, CompiledPolicy):
        return
    first, last = settings.machine.task_uids
    others: Ranges = ((first, last),)
    # The starter reports that this account is missing.
    with suppress(ExecutorError):
        usual = task_account(settings.task_user).uid
        others = (*others, (usual, usual))
    is_possible = settings.machine.isolation == SANDBOX and os.geteuid() == 0
    problems: list[Problem] = []
    for mapping in policy.acceptance.mappings:
        account = account_for_tasks(mapping.account, others=others)
        if not is_possible:
            problems.append(_problem(policy, mapping, _NO_SANDBOX, _WHERE))
        elif isinstance(account, str):
            problems.append(_problem(policy, mapping, f"no task can run as {mapping.account}: {account}", _WHO))
    if problems:
        raise PolicyError(tuple(problems))


def _problem(policy: CompiledPolicy, mapping: Mapping, message: str, hint: str) -> Problem:
    file, text = (policy.source.file, policy.source.text) if policy.source is not None else ("", "")
    before = text[: mapping.start]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Problem(code=Code.MEANING, file=file, line=line, column=column, message=message, hint=hint)
