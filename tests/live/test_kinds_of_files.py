"""What a file is, from the user's folder to the machine of another module and back (docs/files.md)."""

import os
import platform
import shutil
from pathlib import Path

from tests.live.conftest import Federation

ON_RIGHT = ("--require", '$side eq "right"')


def test_links_folders_modes_and_holes_travel_both_ways(pair: Federation, tmp_path: Path) -> None:
    folder, home = tmp_path / "data", tmp_path / "home"
    (folder / "deep").mkdir(parents=True)
    (folder / "none").mkdir()
    (folder / "tool").write_text("#!/bin/sh\necho tool\n")
    (folder / "tool").chmod(0o755)
    (folder / "deep" / "up").symlink_to("../tool")
    (folder / "dangling").symlink_to("not/here")
    with (folder / "sparse").open("wb") as file:
        file.truncate(8 << 20)
    script = """
        data/deep/up && test "$(readlink data/dangling)" = not/here && test -d data/none || exit 3
        stat -c %b data/sparse; cp -a data out; mkdir out/made; ln -s /etc out/outside
        touch a.csv b.csv c.txt
    """
    done = pair.run(
        *("submit", "--quiet", "--input", str(folder), "--output", "out", "--output", "*.csv", *ON_RIGHT),
        *("--", "sh", "-c", script),
    )
    assert done.returncode == 0, done.stderr
    task = done.stdout.strip()
    waited = pair.run("wait", task)
    assert waited.returncode == 0, pair.run("explain", task).stdout
    tool, blocks = pair.run("logs", task).stdout.split()
    assert (tool, int(blocks) * 512 < 1 << 20) == ("tool", True)
    fetched = pair.run("fetch", task, "--into", str(home))
    assert fetched.returncode == 0, fetched.stderr
    omitted = f"{task}: omitted: out/outside (a link to /etc, out of the working directory)\n"
    for text in (pair.run("status", task).stdout, waited.stderr, fetched.stderr):
        assert omitted in text
    assert sorted(str(path.relative_to(home)) for path in home.rglob("*")) == [
        "a.csv",
        "b.csv",
        "out",
        "out/dangling",
        "out/deep",
        "out/deep/up",
        "out/made",
        "out/none",
        "out/sparse",
        "out/tool",
    ]
    assert [str((home / "out" / name).readlink()) for name in ("dangling", "deep/up")] == ["not/here", "../tool"]
    assert os.access(home / "out" / "tool", os.X_OK)
    assert (home / "out" / "sparse").stat().st_size == 8 << 20
    assert (home / "out" / "sparse").stat().st_blocks * 512 < 1 << 20


def test_what_cannot_travel_is_named_before_anything_is_submitted(pair: Federation, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "link").symlink_to("../outside")
    done = pair.run("submit", "--input", str(folder), "--", "true")
    assert done.returncode != 0
    assert f"{folder}/link` is a link to `../outside`" in done.stderr
    (folder / "link").unlink()
    (folder / os.fsdecode(b"a\xff")).touch()
    done = pair.run("submit", "--input", str(folder), "--", "true")
    assert done.returncode != 0
    assert "it is not UTF-8" in done.stderr


def test_a_program_among_the_inputs_asks_for_a_machine_with_its_instruction_set(
    pair: Federation, tmp_path: Path
) -> None:
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    shutil.copy(shutil.which("true") or "", own)
    # The header of a program for s390x: 64 bits, the highest byte first, machine 22.
    foreign.write_bytes(b"\x7fELF\x02\x02" + bytes(12) + (22).to_bytes(2, "big"))
    foreign.chmod(0o755)
    runs, denied = (
        pair.submit("--no-wait", "--input", str(program), "--", f"./{program.name}") for program in (own, foreign)
    )
    assert (pair.run("wait", runs).returncode, pair.run("wait", denied).returncode != 0) == (0, True)
    assert pair.status(runs)["requirement"] == f'$arch eq "{platform.machine()}"'
    document = pair.status(denied)
    assert (document["requirement"], document["state"]) == ('$arch eq "s390x"', "denied")
