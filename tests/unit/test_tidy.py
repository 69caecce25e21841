"""The shape of the code, checked: sizes, parameters, docstrings, names, and no state in modules.

A defect is reported as `file:line: what`. Generated code is not looked at.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "messiahs" / "wire" / "v1"
MODULE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 6
POSITIONAL = 2
WAITING = Path("tests/waiting.py")
VAGUE_NAMES = ("utils", "util", "common", "helpers", "helper", "manager")
HOSTS = (("messiahs", "daemon"), ("messiahs", "sim"))
CONTAINERS = ("list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Named = ast.ClassDef | Function


def _defects(path: Path, source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    # Walked once for all checks: walking takes longer than parsing.
    nodes = list(ast.walk(tree))
    is_test = path.parts[0] == "tests"
    if (lines := source.count("\n")) > MODULE_LINES:
        yield MODULE_LINES + 1, f"a module of {lines} lines (at most {MODULE_LINES})"
    if _is_vague(path.stem):
        yield 1, f"a module named {path.stem}"
    if path.name != "__init__.py" and ast.get_docstring(tree) is None:
        yield 1, "a module without a docstring"
    yield from _module_state(tree)
    if path.parts[:2] in HOSTS and path.parts[2] != "checks":
        yield from _looks_inside(nodes)
    for node in nodes:
        if isinstance(node, Named):
            if isinstance(node, Function):
                yield from _function_defects(node)
            if _is_vague(node.name):
                yield node.lineno, f"the name {node.name}"
    if is_test and path != WAITING:
        yield from ((line, "a sleep in a test") for line in _sleeps(nodes))
    if not is_test:
        yield from _undocumented(tree.body)


def _is_vague(name: str) -> bool:
    # The name of a test is a sentence, and may hold any word.
    words = re.findall(r"[A-Z]?[a-z]+", name)
    return not name.startswith("test_") and any(word.lower() in VAGUE_NAMES for word in words)


def _module_state(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find module-level containers that could be changed; one that never is has a name in capitals."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if _is_mutable(node.value) and not all(name.isupper() or name == "__all__" for name in names):
            yield node.lineno, f"module state: {', '.join(names)}"


def _looks_inside(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Find what reads the state of a module by itself: a host hands it on, to `messiahs.core.queries`."""
    handed_on = {id(argument) for node in nodes if isinstance(node, ast.Call) for argument in node.args}
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr != "state" or id(node) in handed_on:
            continue
        if _last_name(node.value).lstrip("_") == "module":
            yield node.lineno, "a host looks into the state of a module"


def _is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and _last_name(value.func) in CONTAINERS


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _function_defects(function: Function) -> Iterator[tuple[int, str]]:
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    if lines > FUNCTION_LINES:
        yield function.lineno, f"{function.name} has {lines} lines (at most {FUNCTION_LINES})"
    own = function.args
    named = [parameter for parameter in own.args if parameter.arg not in ("self", "cls")]
    only_positional = [parameter for parameter in own.posonlyargs if parameter.arg not in ("self", "cls")]
    count = len(only_positional) + len(named) + len(own.kwonlyargs)
    if count > PARAMETERS:
        yield function.lineno, f"{function.name} has {count} parameters (at most {PARAMETERS})"
    # Private signatures are read beside their few calls, a test's parameters are fixtures, `/` is a decision.
    is_forced = function.name.startswith(("_", "test_")) or bool(own.posonlyargs) or _is_fixture(function)
    # Handlers take (state, message, now): the instant comes last everywhere, and cannot be mistaken.
    positional = [parameter.arg for parameter in named if parameter.arg != "now"]
    if len(positional) > POSITIONAL and not is_forced:
        yield function.lineno, f"{function.name}: {positional[POSITIONAL]} is to be keyword-only"


def _is_fixture(function: Function) -> bool:
    decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    return any(_last_name(decorator) == "fixture" for decorator in decorators)


def _sleeps(nodes: list[ast.AST]) -> Iterator[int]:
    """Find where time passes for nothing, also in the wait for an event that nothing sets."""
    events = {
        ast.unparse(target)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _last_name(node.value.func) == "Event"
        for target in node.targets
    }
    text = ast.unparse(nodes[0]) if events else ""
    unset = {name for name in events if f"{name}.set" not in text}
    for node in nodes:
        if _is_sleep(node, unset):
            yield node.lineno


def _is_sleep(node: ast.AST, unset: set[str]) -> TypeGuard[ast.ImportFrom | ast.Call]:
    if isinstance(node, ast.ImportFrom):
        return node.module in ("asyncio", "time") and any(alias.name == "sleep" for alias in node.names)
    if not isinstance(node, ast.Call) or _last_name(node.func) not in ("sleep", "select", "wait"):
        return False
    values = (*node.args, *(each.value for each in node.keywords))
    match ast.unparse(node.func), [ast.unparse(value) for value in values]:
        case "time.sleep", _:
            return True
        case "asyncio.sleep", [seconds]:
            return seconds != "0"
        case "select.select", ["[]", "[]", "[]", _]:
            return True
        case called, [_]:
            event, _, method = called.rpartition(".")
            return method == "wait" and (event.endswith("Event()") or event in unset)
    return False


def _undocumented(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_") or _is_overload(node):
            continue
        if ast.get_docstring(node) is None:
            yield node.lineno, f"{node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body)


def _is_overload(node: ast.ClassDef | Function) -> bool:
    return any(_last_name(decorator) == "overload" for decorator in node.decorator_list)


def _sources() -> list[Path]:
    found = [*(ROOT / "messiahs").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return sorted(path for path in found if GENERATED not in path.parents)


def test_the_code_has_the_shape_that_was_agreed() -> None:
    defects = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in _sources()
        for line, what in _defects(path.relative_to(ROOT), path.read_text())
    ]
    assert not defects, "\n".join(defects)


def test_there_is_code_to_look_at() -> None:
    names = [str(path.relative_to(ROOT)) for path in _sources()]
    assert "messiahs/core/vectors/vectors.py" in names
    assert "tests/unit/test_tidy.py" in names
    assert not [name for name in names if name.startswith("messiahs/wire/v1")]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('"""M."""\n' + "x = 1\n" * 400, "401 lines"),
        ("x = 1\n", "module without a docstring"),
        ('"""M."""\nknown = {}\n', "module state: known"),
        ('"""M."""\nknown: list[int] = []\n', "module state: known"),
        ('"""M."""\n_seen = set()\n', "module state: _seen"),
        ('"""M."""\ndef f() -> None:\n    pass\n', "f has no docstring"),
        ('"""M."""\nclass C:\n    """C."""\n    def f(self) -> None:\n        pass\n', "f has no docstring"),
        ('"""M."""\ndef f(a, b, c):\n    """F."""\n', "f: c is to be keyword-only"),
        ('"""M."""\ndef f(*, a, b, c, d, e, f, g):\n    """F."""\n', "7 parameters"),
        ('"""M."""\ndef f():\n    """F."""\n' + "    x = 1\n" * 60, "f has 62 lines"),
        ('"""M."""\nclass TaskManager:\n    """T."""\n', "the name TaskManager"),
        ('"""M."""\nclass FileUtils:\n    """F."""\n', "the name FileUtils"),
    ],
)
def test_a_defect_is_found(source: str, what: str) -> None:
    (defect,) = _defects(Path("messiahs/core/example.py"), source)
    assert what in defect[1]


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(1)",
        "from time import sleep",
        "from asyncio import sleep",
        "asyncio.sleep(0.1)",
        "threading.Event().wait(1)",
        "Event().wait(timeout=1)",
        "pause = threading.Event(); pause.wait(1)",
        "self.pause = threading.Event(); self.pause.wait(1)",
        "select.select([], [], [], 1)",
    ],
)
def test_a_sleep_in_a_test_is_found(line: str) -> None:
    source = f'"""M."""\n{line}\n'
    assert [what for _, what in _defects(Path("tests/unit/example.py"), source)] == ["a sleep in a test"]
    assert not list(_defects(WAITING, source))
    assert not list(_defects(Path("messiahs/daemon/example.py"), source))


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.sleep(0)",
        "asyncio.Event().wait()",
        "ended = threading.Event(); ended.wait(60); run(ended.set)",
        "process.wait(60)",
        "select.select([pipe], [], [], 60)",
    ],
)
def test_waiting_for_something_is_no_sleep(line: str) -> None:
    assert not list(_defects(Path("tests/unit/example.py"), f'"""M."""\n{line}\n'))


@pytest.mark.parametrize("folder", ["daemon/api", "sim/hosts"])
@pytest.mark.parametrize(
    "source", ['"""M."""\nx = host.module.state.system\n', '"""M."""\ndef _f(self):\n    known = self._module.state\n']
)
def test_a_host_that_looks_into_a_state_is_found(folder: str, source: str) -> None:
    ((_, what),) = _defects(Path(f"messiahs/{folder}/example.py"), source)
    assert what == "a host looks into the state of a module"


@pytest.mark.parametrize("folder", ["daemon/api", "sim/checks"])
def test_a_host_hands_a_state_on_and_a_checker_looks_inside(folder: str) -> None:
    is_checker = folder == "sim/checks"
    source = "state = host.module.state" if is_checker else "has_space = queries.has_space(host.module.state)"
    assert not list(_defects(Path(f"messiahs/{folder}/example.py"), f'"""M."""\n{source}\n'))


def test_a_vague_name_of_a_module_is_found() -> None:
    (defect,) = _defects(Path("messiahs/core/file_utils.py"), '"""M."""\n')
    assert defect == (1, "a module named file_utils")


@pytest.mark.parametrize(
    "source",
    [
        '"""M."""\nKNOWN = {}\n__all__ = []\n_PAIRS = ((1, 2),)\n',
        '"""M."""\ndef f(a, b, /, c):\n    """F."""\n',
        '"""M."""\ndef f(a, b, *, c, d, e, g):\n    """F."""\n',
        '"""M."""\ndef f(state, message, now):\n    """F."""\n',
        '"""M."""\ndef _f():\n    pass\n',
        '"""M."""\nclass C:\n    """C."""\n    def __exit__(self, kind, error, trace):\n        pass\n',
        '"""M."""\nclass C:\n    """C."""\n    def f(self, a, b):\n        """F."""\n',
    ],
)
def test_what_is_allowed_is_no_defect(source: str) -> None:
    assert not list(_defects(Path("messiahs/core/example.py"), source))
