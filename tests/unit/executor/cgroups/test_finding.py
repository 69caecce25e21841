"""Where control groups may be created, found in a fake tree of the kernel's files."""

from pathlib import Path

from messiahs.executor.linux.cgroups.finding import find_place

_MOUNT = "35 24 0:30 {root} {folder} rw,relatime shared:9 - {kind} {kind} rw,{controllers}\n"


def proc_of(tmp_path: Path, groups: str, *, mounts: str) -> Path:
    proc = tmp_path / "self"
    proc.mkdir()
    (proc / "cgroup").write_text(groups)
    (proc / "mountinfo").write_text(mounts)
    return proc


def mount(folder: Path, kind: str, *, controllers: str = "", root: str = "/") -> str:
    return _MOUNT.format(root=root, folder=folder, kind=kind, controllers=controllers)


def made(folder: Path, *, processes: str = "", is_first: bool = False) -> Path:
    """Make the folder of a group of version 2."""
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text(processes)
    if not is_first:
        (folder / "cgroup.type").write_text("domain\n")
    return folder


def test_a_delegated_group_is_divided_if_the_daemon_is_in_a_group_below_it(tmp_path: Path) -> None:
    unit = made(tmp_path / "cgroup/messiahs.service")
    made(unit / "daemon", processes="17\n")
    proc = proc_of(tmp_path, "0::/messiahs.service/daemon\n", mounts=mount(tmp_path / "cgroup", "cgroup2"))
    place = find_place(proc)
    assert (place.version2, place.limits, place.problem) == (str(unit), "memory, processes, processors", "")
    # The kernel adds each word; a plain file keeps what was written last.
    assert (unit / "cgroup.subtree_control").read_text().startswith("+pids")


def test_a_group_with_processes_is_not_divided_but_the_one_above_it(tmp_path: Path) -> None:
    root = made(tmp_path / "cgroup", processes="1\n", is_first=True)
    made(root / "system.slice", processes="7\n")
    made(root / "system.slice/messiahs.service", processes="17\n")
    proc = proc_of(tmp_path, "0::/system.slice/messiahs.service\n", mounts=mount(root, "cgroup2"))
    assert find_place(proc, prepares=False).version2 == str(root)
    assert (root / "cgroup.subtree_control").read_text() == ""


def test_a_group_without_a_memory_controller_is_no_place(tmp_path: Path) -> None:
    root = made(tmp_path / "cgroup", is_first=True)
    (root / "cgroup.controllers").write_text("hugetlb\n")
    assert find_place(proc_of(tmp_path, "0::/\n", mounts=mount(root, "cgroup2"))).problem != ""


def test_groups_of_version_1_are_created_below_the_own_ones(tmp_path: Path) -> None:
    for name in ("memory/a/b", "pids", "cpu,cpuacct/a"):
        (tmp_path / name).mkdir(parents=True)
    mounts = mount(tmp_path / "memory", "cgroup", controllers="memory") + mount(
        tmp_path / "pids", "cgroup", controllers="pids", root="/docker/1"
    )
    mounts += mount(tmp_path / "cpu,cpuacct", "cgroup", controllers="cpu,cpuacct") + mount(
        tmp_path / "unified", "cgroup2"
    )
    groups = "9:pids:/docker/1\n4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/\n"
    assert find_place(proc_of(tmp_path, groups, mounts=mounts)).version1 == {
        "memory": str(tmp_path / "memory/a/b"),
        "pids": str(tmp_path / "pids"),
        "cpu": str(tmp_path / "cpu,cpuacct/a"),
        "cpuacct": str(tmp_path / "cpu,cpuacct/a"),
    }


def test_groups_of_version_1_that_cannot_forbid_new_processes_are_no_place(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    mounts = mount(folder, "cgroup", controllers="memory")
    place = find_place(proc_of(tmp_path, "4:memory:/\n", mounts=mounts))
    assert (place.version1, place.problem != "") == ({}, True)


def test_where_there_are_no_groups_the_place_says_so(tmp_path: Path) -> None:
    place = find_place(proc_of(tmp_path, "0::/\n", mounts=mount(tmp_path / "nowhere", "cgroup2")))
    assert (place.version1, place.version2) == ({}, "")
    assert place.problem == "no control groups: there is none that this account may divide"
