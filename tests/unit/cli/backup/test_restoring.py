"""A backup comes back as it was, in any place; what exists, runs or does not fit is left alone."""

import hashlib
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.cli.backup.archive import Writer, member_of, unpack
from messiahs.cli.backup.making import make
from messiahs.cli.backup.restoring import restore
from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.cli.main import main
from messiahs.client.locating import ModulePlace, known_modules
from messiahs.config.settings import load_settings
from messiahs.config.topology.reading import load_topology
from messiahs.core.interface.actions import Store
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import CountersRow, SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.process.pid_files import record_this_process
from messiahs.daemon.storage.contents import contents_folder
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import ClientError
from messiahs.executor.protocol.layout import own_account, prepare_files_root

TOPOLOGY = """
version: 1
federation: pair
defaults: {policy: own.policy}
systems:
  left: {}
  right: {parent: left}
"""
INPUT = b"an input of a task that waits\n"
WAITING = TaskId(SystemId("left"), Epoch(7), 2)
ENDED = TaskId(SystemId("left"), Epoch(7), 1)


def submission(task: TaskId, **other: object) -> SubmissionRow:
    hashed = hashlib.sha256(INPUT if task == WAITING else b"gone").digest()
    inputs = (InputFile(name="in.txt", sha256=hashed, size_bytes=len(INPUT)),)
    values = {"tdv": TDV(()), "requirement": "", "command": Command(argv=("true",), inputs=inputs), "members": 0}
    return SubmissionRow(id=task, key=ClientKey(str(task)), submitted_at=Instant(1), **values, **other)  # type: ignore[arg-type]


@pytest.fixture
def state(short_folder: Path) -> Path:
    """Make a federation of two modules that do not run; `left` has a task that waits and one that has ended."""
    state = short_folder / "s"
    (short_folder / "own.policy").write_text('policy "own" version 1;\naccept from any { }\n')
    (short_folder / "pair.yaml").write_text(TOPOLOGY)
    directory = federation_directory(state, "pair")
    prepare(load_topology(short_folder / "pair.yaml"), directory)
    left = directory / "left"
    store = RowStore(left / "module.db")
    rows = (
        CountersRow(submissions=2),
        submission(WAITING),
        submission(ENDED, ended_at=Instant(5)),
        TaskRow(id=ENDED),
    )
    store.commit([Store(row=row) for row in rows], Instant(9))
    store.close()
    root = contents_folder(prepare_files_root(left, own_account(), fallback=short_folder))
    (root / hashlib.sha256(INPUT).hexdigest()).write_bytes(INPUT)
    (left / "outputs" / "1" / "0").mkdir(parents=True)
    (left / "outputs" / "1" / "0" / "stdout").write_bytes(b"a result\n")
    (left / "outputs" / "1" / "0" / "stdout.1.part").write_bytes(b"half")
    for name in ("module.log", "ballast", "border.key"):
        (left / name).write_bytes(b"x" * 32)
    return state


@pytest.fixture
def file(state: Path, short_folder: Path) -> Path:
    """Make a backup of both."""
    out = short_folder / "backup"
    make(known_modules(state), out)
    return out


def tree_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files; the name of the folder of inputs is drawn."""
    names = {
        path: re.sub("contents-[0-9a-f]+", "contents", str(path.relative_to(folder))) for path in folder.rglob("*")
    }
    return {name: path.read_bytes() for path, name in names.items() if path.is_file()}


def test_a_backup_is_its_owners_alone_and_replaces_no_file(state: Path, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size > 0
    with pytest.raises(ClientError, match="exists already"):
        make(known_modules(state), file)
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []


def test_everything_comes_back_but_what_belongs_to_processes(state: Path, file: Path) -> None:
    before = tree_of(state)
    shutil.rmtree(state)
    done = restore(file, state, replaces=False)
    assert done.contents.modules == ("left", "right")
    assert done.notes == ()
    after = tree_of(state)
    gone = {name for name in before if name not in after}
    assert gone == {
        "pair/left/module.mark", "pair/left/module.log", "pair/left/ballast", "pair/left/outputs/1/0/stdout.1.part",
        "pair/tls/lock",
    }  # fmt: skip
    changed = {name for name in after if after[name] != before.get(name)} - {"pair/left/module.db"}
    assert changed == set()
    keys = [state / "pair" / "tls" / "root.key", state / "pair" / "left" / "key.pem", state / "pair/left/border.key"]
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}


def test_the_rows_are_an_older_copy_for_the_daemon(state: Path, file: Path) -> None:
    shutil.rmtree(state)
    restore(file, state, replaces=False)
    store = RowStore(state / "pair" / "left" / "module.db")
    assert store.submission(WAITING) == submission(WAITING)
    assert store.forgotten is not None
    assert store.forgotten.submissions > 2
    store.close()


def test_in_another_place_settings_name_that_place_and_files_that_are_not_there_come_with_it(
    state: Path, file: Path, short_folder: Path
) -> None:
    other = short_folder / "other"
    restore(file, other, replaces=False)
    settings = load_settings(other / "pair" / "left" / "settings.json")
    assert settings.state_directory == other / "pair"
    assert settings.key_file == other / "pair" / "left" / "key.pem"
    assert settings.policy_file == short_folder / "own.policy"
    shutil.rmtree(other)
    (short_folder / "own.policy").unlink()
    restore(file, other, replaces=False)
    kept = load_settings(other / "pair" / "left" / "settings.json").policy_file
    assert kept is not None
    assert kept.is_relative_to(other / "pair" / "left")
    assert kept.read_text().startswith('policy "own"')


def test_a_module_that_exists_is_replaced_only_on_request_and_never_while_it_runs(state: Path, file: Path) -> None:
    before = tree_of(state)
    with pytest.raises(ClientError, match="--replace"):
        restore(file, state, replaces=False)
    record_this_process(state / "pair" / "right" / "daemon.pid")
    with pytest.raises(ClientError, match="still run"):
        restore(file, state, replaces=True)
    (state / "pair" / "right" / "daemon.pid").unlink()
    assert tree_of(state) == before
    left = state / "pair" / "left"
    (left / "later").write_text("of a later time")
    logs = (left / "audit" / "2026-11-28" / "top.jsonl", left / "module.log", left / "module.log.1")
    for path in logs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("decided")
    restore(file, state, replaces=True)
    assert not (left / "later").exists()
    assert [path.read_text() for path in logs] == ["decided"] * 3
    assert not list(state.glob(".restore-*"))


def test_one_module_comes_back_beside_others_and_what_they_share_stays(state: Path, short_folder: Path) -> None:
    out = short_folder / "left-alone"
    make((ModulePlace(federation="pair", module="left", state_directory=state),), out)
    shutil.rmtree(state / "pair" / "left")
    (state / "pair" / "ports.json").write_text("{}")
    done = restore(out, state, replaces=False)
    assert [note.rpartition("/")[2].split()[0] for note in done.notes] == ["ports.json"]
    assert (state / "pair" / "ports.json").read_text() == "{}"
    assert (state / "pair" / "left" / "settings.json").exists()


def test_one_module_of_a_backup_of_all_is_restored_and_the_others_stay_as_they_are(state: Path, file: Path) -> None:
    left, right = state / "pair" / "left", state / "pair" / "right"
    (right / "border.key").write_bytes(b"newer" * 8)
    before = tree_of(right)
    shutil.rmtree(left)
    done = restore(file, state, replaces=False, module="left")
    assert done.contents.modules == ("left",)
    assert not any(each.path.startswith("modules/right/") for each in done.contents.files)
    assert (left / "outputs" / "1" / "0" / "stdout").read_bytes() == b"a result\n"
    assert tree_of(right) == before
    with pytest.raises(ClientError, match="has no module `center`, but left, right; nothing was changed"):
        restore(file, state, replaces=True, module="center")
    shutil.rmtree(left)
    assert main(["restore", str(file), "--module", "left", "--state", str(state)]) == 0
    assert left.is_dir()


def test_a_site_with_another_root_is_left_alone(state: Path, file: Path) -> None:
    shutil.rmtree(state)
    (state / "pair" / "tls").mkdir(parents=True, mode=0o700)
    (state / "pair" / "tls" / "root.pem").write_text("another")
    with pytest.raises(ClientError, match="another root"):
        restore(file, state, replaces=False)
    assert tree_of(state) == {"pair/tls/root.pem": b"another"}


def test_a_damaged_archive_changes_nothing_and_leaves_nothing(state: Path, file: Path) -> None:
    shutil.rmtree(state)
    content = bytearray(file.read_bytes())
    content[content.index(INPUT)] ^= 1
    file.write_bytes(content)
    with pytest.raises(ClientError, match="not the one that was stored"):
        restore(file, state, replaces=False)
    assert not state.exists()


def test_a_folder_or_a_pipe_is_no_backup(state: Path, short_folder: Path) -> None:
    with pytest.raises(ClientError, match="nothing was changed"):
        restore(short_folder, state, replaces=True)


def written_anew(file: Path, out: Path, *, more: str = "", settings: dict[str, str] | None = None) -> None:
    """Write a backup that nobody made: with a file at one more path, or with other values in the settings of `left`."""
    members = out.with_name("members")
    members.mkdir()
    with file.open("rb") as raw:
        contents = unpack(raw, members)
    outside = dict(contents.outside)
    with out.open("wb") as raw:
        writer = Writer(raw)
        for number, each in enumerate(contents.files):
            path = member_of(members, number)
            if settings is not None and each.path == "modules/left/settings.json":
                known = json.loads(path.read_text())
                outside["left"] = {settings.get("policy_file", ""): contents.outside["left"][known["policy_file"]]}
                path.write_text(json.dumps(known | settings))
            writer.add(each.path, path)
        if more:
            (members / "more").write_text("{}")
            writer.add(more, members / "more")
        writer.finish(replace(contents, files=tuple(writer.files), outside=outside))


@pytest.mark.parametrize(
    "path",
    [
        "modules/left/daemon.pid",
        "modules/left/starter.pid",
        "modules/left/module.mark",
        "modules/left/journal.0",
        "modules/left/module.db-wal",
        "modules/left/files/starter.pid",
        "modules/left/outputs/starter.pid",
        "modules/left/outside/starter.pid",
        "modules/left/elsewhere/file",
        "tls/daemon.pid",
        "tls/lock",
        "supervisor.pid",
    ],
)
def test_what_no_backup_writes_is_not_restored(state: Path, file: Path, short_folder: Path, path: str) -> None:
    written_anew(file, short_folder / "hostile", more=path)
    shutil.rmtree(state)
    with pytest.raises(ClientError, match=f"{path} has no place in it"):
        restore(short_folder / "hostile", state, replaces=False)
    assert not state.exists()


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_device_or_a_pipe_that_a_backup_names_is_not_read(
    state: Path, file: Path, short_folder: Path, kind: str
) -> None:
    named = Path("/dev/zero") if kind == "device" else short_folder / "pipe"
    if kind == "pipe":
        os.mkfifo(named)
    written_anew(file, short_folder / "hostile", settings={"policy_file": str(named)})
    shutil.rmtree(state)
    restore(short_folder / "hostile", state, replaces=False)
    kept = load_settings(state / "pair" / "left" / "settings.json").policy_file
    assert kept is not None
    assert kept.read_text().startswith('policy "own"')


def test_an_input_that_is_missing_is_named(state: Path, short_folder: Path) -> None:
    for path in (state / "pair" / "left" / "files").glob("*/*"):
        path.unlink(missing_ok=True)
    with pytest.raises(ClientError, match="is missing, an input"):
        make(known_modules(state), short_folder / "backup")
    assert not (short_folder / "backup").exists()


def test_the_commands_say_what_is_in_a_backup(
    state: Path, short_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = short_folder / "backup"
    assert main(["backup", "--all", "--state", str(state), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "left, right of pair" in printed
    assert "have not ended: 1" in printed
    shutil.rmtree(state)
    assert main(["restore", str(out), "--state", str(state)]) == 0
    assert capsys.readouterr().out.startswith("left, right of pair, as of 20")
    assert main(["restore", str(out), "--state", str(state)]) == 1
    assert "--replace" in capsys.readouterr().err
    assert main(["backup", "--state", str(state), "--out", str(out)]) == 2


def test_the_environment_names_the_module_to_store(
    state: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["backup", "--state", str(state), "--out", str(short_folder / "backup")]
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    assert main(command) == 2
    assert "name one module with --module or MESSIAHS_MODULE, or --all" in capsys.readouterr().err
    monkeypatch.setenv("MESSIAHS_MODULE", "right")
    assert main(command) == 0
    assert "right of pair" in capsys.readouterr().out
