"""A module that starts with `--topology` takes the file over as `topology apply` does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.small_sites import Site
from tests.ports import free_port
from tests.waiting import eventually

_HEAD = "version: 1\nfederation: pact\ndefaults: {policy: open.policy, update_period: 200ms}\nsystems:\n"
_POLICY = 'policy "open" version 1;\naccept from any {}\naccept from users {}\n'
_ADVICE = "`messiahs topology apply FILE` adds it again"


class _Lab:
    """A parent and its two children, each run by `module run` with one state directory (mutable)."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "site.yaml"
        self._ports = {name: free_port() for name in ("top", "left", "right")}
        self.sites = {name: Site(name=name, folder=folder) for name in self._ports}
        (folder / "open.policy").write_text(_POLICY)
        self.write(*self.sites)

    def write(self, *names: str) -> None:
        """Write the file anew."""
        entries = (
            f"  {name}: {{host: 127.0.0.1, port: {self._ports[name]}{'' if name == 'top' else ', parent: top'}}}\n"
            for name in names
        )
        self._file.write_text(_HEAD + "".join(entries))

    def apply(self) -> str:
        """Apply the file, and return what is printed."""
        done = self.sites["top"].run("topology", "apply", str(self._file))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def linked(self, name: str) -> list[str]:
        """Return the neighbors with which a module is linked."""
        found = self.sites[name].document("neighbor", "list").get("neighbors", [])
        return sorted(each["name"] for each in found if each["state"] == "linked")

    def notes(self, name: str) -> list[str]:
        """Return what a module reports to its administrator."""
        modules = self.sites[name].document("module", "list")["modules"]
        return [note for each in modules if each["name"] == name for note in each["notes"]]

    def are_all_linked(self) -> bool:
        """Return whether each module is linked with the two others."""
        return all(self.linked(name) == sorted({*self.sites} - {name}) for name in self.sites)


@pytest.fixture
def lab(short_folder: Path) -> Iterator[_Lab]:
    """Start the three modules."""
    made = _Lab(short_folder)
    for site in made.sites.values():
        site.start()
    try:
        eventually(made.are_all_linked)
        yield made
    finally:
        for site in made.sites.values():
            site.end()


def test_a_module_that_left_the_file_is_linked_again_when_it_starts_with_a_file_that_names_it(lab: _Lab) -> None:
    right = lab.sites["right"]
    assert right.run("module", "drain", "--reason", "going").returncode == 0
    lab.write("top", "left")
    assert "top: loses right" in lab.apply()
    because = "top has ended the link: it is no neighbor in the topology file"
    told = f"the link with its parent top has ended ({because}), and its topology file lists top: {_ADVICE}"
    eventually(lambda: told in lab.notes("right"))
    right.end()
    lab.write("top", "left", "right")
    assert "`messiahs module run NAME --topology FILE`" in lab.apply()
    right.start()
    eventually(lab.are_all_linked)
    assert told not in lab.notes("right")
    assert right.run("module", "undrain").returncode == 0


def test_a_neighbor_that_people_have_removed_stays_away_at_such_a_start(lab: _Lab) -> None:
    right = lab.sites["right"]
    assert right.run("module", "remove", "left", "--reason", "no more").returncode == 0
    eventually(lambda: lab.linked("right") == ["top"])
    right.end()
    right.start()
    eventually(lambda: lab.linked("right") == ["top"])
    assert [each["name"] for each in right.document("neighbor", "list")["neighbors"]] == ["top"]
