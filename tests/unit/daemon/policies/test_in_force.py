"""The policy in force in a daemon: its own file, or one that was loaded in its place, also after a restart."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import pytest

from messiahs.config.settings import ModuleSettings
from messiahs.core.interface.parts import Policy
from messiahs.core.model.instants import SECOND
from messiahs.daemon.policies.in_force import Policies
from messiahs.errors import PolicyError, UnusableStateError

OWN = 'policy "own"; accept from any { limit 1 tasks; }'
OTHER = 'policy "other"; timeouts { request 3s; }'
DAMAGES: list[Callable[[str], str]] = [
    lambda _: "",
    lambda _: "{",
    lambda text: text.replace("3s", "3"),
    lambda text: text.replace("3s", "\udcff"),
]
BAD = 'policy "bad"; accept from any { require $mem <= 8min; }'


@dataclass(slots=True)
class Site:
    """A folder with a policy file and the state of a module (mutable)."""

    folder: Path
    has_file: bool = True
    changes: list[Policy] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The module's own policy file."""
        return self.folder / "own.policy"

    def start(self) -> Policies:
        """Start a daemon's part."""
        settings = self.settings()
        settings.directory.mkdir(exist_ok=True)
        return Policies(settings, on_changed=self.changes.append)

    def settings(self) -> ModuleSettings:
        """Return the settings of the module."""
        nowhere = self.folder / "nowhere"
        return ModuleSettings(
            federation="f",
            name="m",
            state_directory=self.folder,
            listen="localhost:1",
            certificate_file=nowhere,
            key_file=nowhere,
            trust_file=nowhere,
            policy_file=self.file if self.has_file else None,
            update_period_ns=5 * SECOND,
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Make a site with a policy."""
    made = Site(folder=tmp_path)
    made.file.write_text(OWN)
    return made


def _shown(policies: Policies) -> tuple[str, str, bool]:
    document = policies.document()
    return document["name"], document["file"], document["loaded"]


def test_a_module_begins_with_its_own_file(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        policies = site.start()
    document = policies.document()
    assert _shown(policies) == ("own", str(site.file), False)
    assert document["sha256"] == sha256(OWN.encode()).hexdigest()
    assert document["own_file"] == str(site.file)
    assert f"policy {site.file}, SHA-256 {document['sha256']}, is in force" in caplog.text
    assert policies.policy.timeouts.update_period_ns == 5 * SECOND


def test_a_module_without_a_file_accepts_everybody_and_can_be_given_a_policy(site: Site) -> None:
    site.has_file = False
    policies = site.start()
    assert _shown(policies) == ("", "", False)
    policies.load(OTHER, "/x/other.policy")
    assert _shown(policies) == ("other", "/x/other.policy", True)
    policies.reload()
    assert _shown(policies) == ("", "", False)


def test_what_is_loaded_takes_the_place_of_the_own_file_also_after_a_restart(site: Site) -> None:
    policies = site.start()
    policies.load(OTHER, "/x/other.policy")
    (changed,) = site.changes
    assert (changed.timeouts.request_ns, changed.timeouts.update_period_ns) == (3 * SECOND, 5 * SECOND)
    since = policies.document()["since"]
    again = site.start()
    assert _shown(again) == ("other", "/x/other.policy", True)
    assert again.document()["since"] == since
    assert again.policy == changed


def test_what_is_kept_can_be_read_by_its_owner_alone(site: Site) -> None:
    site.start().load(OTHER, "other.policy")
    (kept,) = (site.folder / "m").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_reading_the_own_file_again_ends_what_was_loaded(site: Site) -> None:
    policies = site.start()
    policies.load(OTHER, "other.policy")
    site.file.write_text(OWN.replace("own", "newer"))
    policies.reload()
    assert _shown(policies) == _shown(site.start()) == ("newer", str(site.file), False)
    assert len(site.changes) == 2


@pytest.mark.parametrize("text", [BAD, "accept from any {"])
def test_a_text_with_mistakes_changes_nothing_and_is_logged_with_all_of_them(
    site: Site, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    policies = site.start()
    policies.load(OTHER, "other.policy")
    before = policies.document()
    with caplog.at_level(logging.ERROR), pytest.raises(PolicyError) as raised:
        policies.load(text, "worse.policy")
    assert policies.document() == before
    assert len(site.changes) == 1
    assert f"policy worse.policy, SHA-256 {sha256(text.encode()).hexdigest()}, is refused" in caplog.text
    assert all(str(problem) in caplog.text for problem in raised.value.problems)
    assert _shown(site.start()) == ("other", "other.policy", True)


def test_an_own_file_with_mistakes_or_gone_changes_nothing_and_is_logged(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    policies = site.start()
    policies.load(OTHER, "other.policy")
    site.file.write_text(BAD)
    policies.try_to_reload()
    assert "size compared with a duration" in caplog.text
    site.file.unlink()
    policies.try_to_reload()
    assert "No such file" in caplog.text
    assert _shown(policies) == ("other", "other.policy", True)
    assert len(site.changes) == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_loaded_and_cannot_be_used_any_more_leaves_the_own_file_and_a_loud_line(
    site: Site, caplog: pytest.LogCaptureFixture, damage: Callable[[str], str]
) -> None:
    site.start().load(OTHER, "other.policy")
    (kept,) = (site.folder / "m").iterdir()
    kept.write_text(damage(kept.read_text()), errors="surrogateescape")
    policies = site.start()
    assert _shown(policies) == ("own", str(site.file), False)
    assert f"THE LOADED POLICY IS LOST: {site.file}" in caplog.text
    assert str(kept) in caplog.text
    policies.load(OTHER, "other.policy")
    assert _shown(site.start()) == ("other", "other.policy", True)


@pytest.mark.parametrize("damage", DAMAGES)
def test_without_an_own_file_nobody_is_accepted_because_of_damage(site: Site, damage: Callable[[str], str]) -> None:
    site.has_file = False
    site.start().load(OTHER, "other.policy")
    (kept,) = (site.folder / "m").iterdir()
    kept.write_text(damage(kept.read_text()), errors="surrogateescape")
    with pytest.raises(UnusableStateError, match=r"(?s)loaded_policy\.json.* remove this one"):
        site.start()


def test_what_was_loaded_is_not_said_to_be_in_force_when_it_is_not_any_more(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        policies = site.start()
        policies.load(OTHER, "other.policy")
        (site.folder / "m").rename(site.folder / "kept")
        (site.folder / "m").write_text("in the way")
        caplog.clear()
        with pytest.raises(NotADirectoryError):
            policies.reload()
    assert _shown(policies) == ("other", "other.policy", True)
    assert "is in force" not in caplog.text


def test_a_load_that_cannot_be_kept_changes_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    policies = site.start()
    (site.folder / "m").rmdir()
    with caplog.at_level(logging.INFO), pytest.raises(OSError, match="No such file"):
        policies.load(OTHER, "other.policy")
    assert "is in force" not in caplog.text
    assert _shown(policies) == ("own", str(site.file), False)
    assert site.changes == []


def test_a_daemon_whose_policy_file_is_a_pipe_ends_with_a_word(site: Site) -> None:
    site.file.unlink()
    os.mkfifo(site.file)
    with pytest.raises(PolicyError, match="it is a pipe, not a regular file"):
        site.start()


def test_changed_settings_put_another_file_and_period_into_force_and_repeated_change_nothing(site: Site) -> None:
    policies = site.start()
    (site.folder / "next.policy").write_text(OTHER)
    changed = replace(site.settings(), policy_file=site.folder / "next.policy", update_period_ns=7 * SECOND)
    put_into_force = policies.prepared(changed)
    assert _shown(policies) == ("own", str(site.file), False)
    assert put_into_force().startswith(f"{site.folder / 'next.policy'}, SHA-256 ")
    assert _shown(policies) == ("other", str(site.folder / "next.policy"), False)
    assert policies.policy.timeouts.update_period_ns == 7 * SECOND
    assert policies.prepared(changed)() == ""
    assert len(site.changes) == 1


def test_a_loaded_policy_stays_in_force_under_changed_settings_and_the_new_file_follows_it(site: Site) -> None:
    policies = site.start()
    policies.load(OTHER, "/x/other.policy")
    (site.folder / "next.policy").write_text(OWN.replace("own", "next"))
    assert policies.prepared(replace(site.settings(), policy_file=site.folder / "next.policy"))() == ""
    assert _shown(policies) == ("other", "/x/other.policy", True)
    policies.reload()
    assert _shown(policies) == ("next", str(site.folder / "next.policy"), False)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_changed_settings_with_a_bad_policy_are_refused_before_anything_changes(site: Site, *, is_loaded: bool) -> None:
    policies = site.start()
    if is_loaded:
        policies.load(OTHER, "/x/other.policy")
    before = _shown(policies)
    (site.folder / "bad.policy").write_text(BAD)
    with pytest.raises(PolicyError):
        policies.prepared(replace(site.settings(), policy_file=site.folder / "bad.policy"))
    assert _shown(policies) == before
    policies.reload()
    assert _shown(policies)[0] == "own"
