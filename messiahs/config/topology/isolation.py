"""Reading how a machine contains its tasks: the keys of its `machine` mapping that are about sandboxes."""

import pwd
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.settings import AUTOMATIC, BUBBLEWRAP, DEFAULT_TASK_UIDS, PROCESS, SANDBOX
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section
from messiahs.core.model.terms import NETWORKS

FOREIGN_TASKS: Final = "foreign_tasks"
RUN_WITH_MY_RIGHTS: Final = "run-with-my-rights"
"""What an owner writes who lets tasks of other sites run with all rights of the module's account."""
ISOLATION_KEYS: Final = ("isolation", "network", "show", "task_uids", FOREIGN_TASKS)
_ISOLATIONS: Final = (PROCESS, SANDBOX, BUBBLEWRAP)
_HOST: Final = "host"
_RANGE: Final = re.compile(r"(\d{1,10})-(\d{1,10})")
_LARGEST_UID: Final = (1 << 31) - 1
"""Some programs take larger numbers for negative ones."""
_MOST_UIDS: Final = 65_536
_OVERFLOW_UIDS: Final = (65_534, 65_535)
_SUBORDINATE: Final = Path("/etc/subuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The keys as they were written, or their defaults."""

    isolation: str
    network: str
    shown: tuple[str, ...]
    task_uids: tuple[int, int]
    lends_account: bool


def read_isolation(section: Section, problems: Problems) -> Isolation:
    """Return how the machine contains tasks."""
    isolation = _one_of(section, "isolation", _ISOLATIONS, problems, default=AUTOMATIC)
    network = _one_of(section, "network", NETWORKS, problems, default="loopback")
    if "network" in section.values and network != _HOST and isolation not in (SANDBOX, BUBBLEWRAP):
        text = f"network: `{network}` needs `isolation: {SANDBOX}` or `{BUBBLEWRAP}`: {_why_no_network(isolation)}"
        problems.add(section.value_place("network"), text)
    if isolation == PROCESS and "show" in section.values:
        problems.add(section.key_place("show"), f"`isolation: {PROCESS}` has no sandboxes: remove its `show`")
    return Isolation(
        isolation=isolation,
        network=network,
        shown=_folders(section, problems),
        task_uids=_uids(section, problems),
        lends_account=_lends_account(section, problems),
    )


def _why_no_network(isolation: str) -> str:
    where = "" if isolation == PROCESS else "without `isolation`, tasks are processes where sandboxes do not work, and "
    return f"{where}processes have that of the host"


def problem_of_uids(first: int, last: int) -> str:
    """Return why these numbers cannot be the accounts of tasks on this host; empty if they can."""
    if not 0 < first <= last <= _LARGEST_UID:
        return f"from 1 to {_LARGEST_UID}, the smaller number first"
    if last - first >= _MOST_UIDS:
        return f"at most {_MOST_UIDS} numbers: each is the account of one task at a time"
    for uid in _OVERFLOW_UIDS:
        if first <= uid <= last:
            return f"{uid} stands for accounts that have no number; tasks never have it"
    for entry in pwd.getpwall():
        if first <= entry.pw_uid <= last:
            return f"{entry.pw_uid} is the account {entry.pw_name}; tasks need numbers that nobody has"
    return _problem_with_containers(first, last)


def _problem_with_containers(first: int, last: int) -> str:
    try:
        lines = _SUBORDINATE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, *numbers = line.split(":")
        if len(numbers) == len(("start", "count")) and all(each.isdecimal() for each in numbers):
            start, count = map(int, numbers)
            if first < start + count and start <= last:
                return f"{name} has {start} to {start + count - 1} for containers ({_SUBORDINATE})"
    return ""


def _one_of(section: Section, key: str, words: tuple[str, ...], problems: Problems, *, default: str) -> str:
    raw = section.values.get(key, default)
    if key in section.values and raw not in words:
        problems.add(section.value_place(key), f"{key}: `{raw}` is none of {', '.join(words)}")
        return default
    return str(raw)


def _lends_account(section: Section, problems: Problems) -> bool:
    words = ("refused", RUN_WITH_MY_RIGHTS)
    return _one_of(section, FOREIGN_TASKS, words, problems, default="refused") == RUN_WITH_MY_RIGHTS


def _folders(section: Section, problems: Problems) -> tuple[str, ...]:
    raw = section.values.get("show", [])
    if isinstance(raw, list) and all(isinstance(each, str) and _is_plain(each) for each in raw):
        return tuple(map(str, raw))
    text = "show: a list of absolute paths without `..`: the folders of the host that tasks in sandboxes see"
    problems.add(section.value_place("show"), text)
    return ()


def _is_plain(folder: str) -> bool:
    return folder.startswith("/") and folder != "/" and ".." not in folder.split("/") and "\0" not in folder


def _uids(section: Section, problems: Problems) -> tuple[int, int]:
    if "task_uids" not in section.values:
        return DEFAULT_TASK_UIDS
    raw = section.values["task_uids"]
    place = section.value_place("task_uids")
    matched = _RANGE.fullmatch(raw) if isinstance(raw, str) else None
    if matched is None:
        problems.add(place, f"task_uids: `{raw}` is not a range such as 2100000000-2100001023")
        return DEFAULT_TASK_UIDS
    first, last = map(int, matched.groups())
    problem = problem_of_uids(first, last)
    if problem:
        problems.add(place, f"task_uids: {problem}")
    return first, last
