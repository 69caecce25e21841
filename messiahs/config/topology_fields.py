"""Extensions of machines that some policy of a topology reads, and that no system of it says (MESSIAHS 5.1)."""

from collections.abc import Iterator
from typing import Final

from lark import Token

from messiahs.config.policies import read_policy
from messiahs.config.topology import Topology
from messiahs.core.attributes import KEY_ATTRIBUTES
from messiahs.language.rules.accepting import AcceptBlock
from messiahs.language.rules.compiled_policy import CompiledPolicy
from messiahs.language.rules.ranking import First, Most
from messiahs.language.rules.readings import HERE, MACHINE, Reading
from messiahs.language.text.problems import Code, Notebook
from messiahs.language.text.scanning import tokens_in
from messiahs.language.text.structure import items_of

_RANKING: Final = ("rank", "candidates")
_ABOUT_MACHINES: Final = ("combine", "let")


def warnings_of_fields(topology: Topology) -> tuple[str, ...]:
    """Give a warning, with its place in the policy, for every such extension; an external system may say anything."""
    if topology.externals:
        return ()
    files = sorted({system.policy_file for system in topology.systems if system.policy_file is not None})
    policies = [read_policy(file) for file in files]
    said = {name for policy in policies for name in _said_by(policy)}
    said |= {name for system in topology.systems if system.machine is not None for name in system.machine.attributes}
    return tuple(warning for policy in policies for warning in _warnings_in(policy, said))


def _said_by(policy: CompiledPolicy) -> set[str]:
    return {*policy.advertising.sent, *(setting.name for setting in policy.advertising.settings)}


def _warnings_in(policy: CompiledPolicy, said: set[str]) -> Iterator[str]:
    assert policy.source is not None, "it was read from a file"
    extensions = {attribute.name for attribute in policy.declared}
    unsaid = {spelling: name for spelling, name in _used_by(policy) if name in extensions - said}
    notebook = Notebook(file=policy.source.file, text=policy.source.text)
    for word in _words_on_machines(notebook):
        if word in unsaid:
            _warn(word, unsaid.pop(str(word)), notebook)
    return map(str, notebook.in_order())


def _words_on_machines(notebook: Notebook) -> Iterator[Token]:
    """Give the words that may name an attribute of machines, of a file without mistakes."""
    end = Token("$END", "", start_pos=len(notebook.text), end_pos=len(notebook.text))
    for item in items_of([*tokens_in(notebook), end], notebook):
        statements = (item.head, *(item.body or ()))
        is_about_machines = tuple(map(str, item.head.words[:2])) == _RANKING or item.head.words[0] in _ABOUT_MACHINES
        for word in (word for statement in statements for word in statement.words):
            if word.type == "VARIABLE" and (is_about_machines or word.startswith(f"${HERE}.")):
                yield word


def _warn(token: Token, name: str, notebook: Notebook) -> None:
    hint = f"name it under `attributes` of a machine, or set it in a policy: set ${name} = ..."
    notebook.warning(token, Code.UNSAID, f"no system of this topology says ${name}", hint=hint)


def _used_by(policy: CompiledPolicy) -> Iterator[tuple[str, str]]:
    """Give what is read of machines as it is written, with its name."""
    for name in (*policy.combining.keys, *policy.combining.carried):
        if name not in KEY_ATTRIBUTES:
            yield f"${name}", name
    for reading in _readings_in(policy):
        if reading.scope in {HERE, MACHINE}:
            yield str(reading), reading.name


def _readings_in(policy: CompiledPolicy) -> Iterator[Reading]:
    for key in policy.ranking or ():
        match key:
            case First(condition):
                yield from condition.readings
            case Most(amount=amount):
                yield from amount.readings
            case _:
                pass
    for block in _blocks_in(policy):
        for requirement in (*block.requirements, *block.occasions):
            yield from requirement.condition.readings


def _blocks_in(policy: CompiledPolicy) -> Iterator[AcceptBlock]:
    accepting = policy.accepting
    yield from (block for _, block in (*accepting.by_name, *accepting.by_relation))
    if accepting.for_any is not None:
        yield accepting.for_any
