"""Warnings for extension attributes that a policy reads and no system of the topology reports (MESSIAHS 5.1)."""

from collections.abc import Iterator
from typing import Final

from lark import Token

from messiahs.config.policies import read_policy
from messiahs.config.settings import MachineSettings
from messiahs.config.topology.topology import Topology
from messiahs.core.model.counted import free
from messiahs.language.explaining.coverage import amounts_in, conditions_in
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import HERE, MACHINE
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import tokens_in
from messiahs.language.syntax.statements import Item, Statement, items_of

_OF_MACHINES: Final = (HERE, MACHINE)


def warnings_of_fields(topology: Topology) -> tuple[str, ...]:
    """Return a warning, with its place in the policy, for each; external systems may report anything."""
    if topology.externals:
        return ()
    policies = _policies_of(topology)
    reported = _reported_in(topology, policies)
    return tuple(warning for policy in policies for warning in _warnings_in(policy, reported))


def reported_names(topology: Topology) -> set[str]:
    """Return the names of the extension attributes that machines and policies of a topology report."""
    return _reported_in(topology, _policies_of(topology))


def _policies_of(topology: Topology) -> list[CompiledPolicy]:
    files = sorted({system.policy_file for system in topology.systems if system.policy_file is not None})
    return [read_policy(file) for file in files]


def _reported_in(topology: Topology, policies: list[CompiledPolicy]) -> set[str]:
    machines = [system.machine for system in topology.systems if system.machine is not None]
    reported = {name for policy in policies for name in _reported_by(policy)}
    return reported | {name for machine in machines for name in _attributes_of(machine)}


def _attributes_of(machine: MachineSettings) -> Iterator[str]:
    yield from machine.attributes
    for things in machine.counted:
        yield from (things.name, free(things.name))


def _reported_by(policy: CompiledPolicy) -> set[str]:
    advertising = policy.disclosure.advertising
    return {*advertising.sent, *(setting.name for setting in advertising.settings)}


def _warnings_in(policy: CompiledPolicy, reported: set[str]) -> Iterator[str]:
    assert policy.source is not None, "the policy was read from a file"
    unreported = {attribute.name for attribute in policy.declared} - reported
    read = {(scope, name) for scope, name in _read_by(policy) if name in unreported}
    notebook = Notebook(file=policy.source.file, text=policy.source.text)
    end = Token("$END", "", start_pos=len(notebook.text), end_pos=len(notebook.text))
    items = items_of([*tokens_in(notebook), end], notebook)
    warned: dict[str, str] = {}
    # A `let` does not show whose attribute a name without a scope is, so it is reported only if no use of it is.
    for item in sorted(items, key=lambda each: each.head.words[0].type == "LET"):
        for scopes, word in _words_on_machines(item):
            name = word[1:].rpartition(".")[2]
            is_warned = name in warned.values() if item.head.words[0].type == "LET" else word in warned
            if not is_warned and any((scope, name) in read for scope in scopes):
                warned[str(word)] = name
                _warn(word, name, notebook)
    return map(str, notebook.in_order())


def _words_on_machines(item: Item) -> Iterator[tuple[tuple[str, ...], Token]]:
    """Yield every word that names an attribute, with the scopes in which it may be a machine's attribute."""
    for statement in (item.head, *(item.body or ())):
        subject = _subject_of(item.head, statement)
        for word in statement.words:
            if word.type == "VARIABLE":
                scope = word[1:].rpartition(".")[0]
                yield (scope,) if scope else subject, word


def _subject_of(head: Statement, statement: Statement) -> tuple[str, ...]:
    """Return the scopes of machines that an attribute without a scope may have here; none if it is a task's."""
    match head.words[0].type:
        case "ADVERTISE":
            return (HERE,)
        case "MIGRATE" if statement.words[0].type == "ASK":
            return (HERE,)
        case "LET":
            return (HERE, MACHINE)
        case "COMBINE":
            return (MACHINE,)
        case "RANK" if head.words[1] == "candidates":
            return (MACHINE,)
        case _:
            return ()


def _warn(token: Token, name: str, notebook: Notebook) -> None:
    hint = f"name it under `attributes` of a machine, or set it in a policy: set ${name} = ..."
    notebook.warning(token, Code.UNSAID, f"no system of this topology reports ${name}", hint=hint)


def _read_by(policy: CompiledPolicy) -> Iterator[tuple[str, str]]:
    """Yield scope and name of each machine attribute that the policy reads."""
    combining = policy.disclosure.combining
    for name in (*combining.keys, *combining.carried):
        yield MACHINE, name
    conditions = [reading for _, condition in conditions_in(policy) for reading in condition.readings]
    amounts = [reading for amount in amounts_in(policy) for reading in amount.readings]
    for reading in (*conditions, *amounts):
        if reading.scope in _OF_MACHINES:
            yield reading.scope, reading.name
