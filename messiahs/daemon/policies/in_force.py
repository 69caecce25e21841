"""The policy in force in a live module, and its replacement.

The settings name the module's own policy file. A text that an administrator loads replaces it, also after a restart,
until the own file is reloaded. Every load is logged with file and SHA-256; a policy with mistakes changes nothing.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from messiahs.config.policies import PolicySource, policy_source
from messiahs.config.settings import ModuleSettings
from messiahs.config.whole_files import sync_folder
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.instants import Instant
from messiahs.daemon.audit.entries import Caller, Entry, Kind
from messiahs.daemon.policies.kept import KEPT, keep, kept_in
from messiahs.daemon.policies.terms import check_terms
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.errors import PolicyError, UnusableStateError

_LOG = logging.getLogger(__name__)
_BACK_TO_OWN = "THE LOADED POLICY IS LOST: %s, the module's own file, is in force. Load the other one again"
_WITHOUT_OWN = "the module has no policy file of its own: if you remove this one, everybody is accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A policy, the instant since which it is in force, and whether it replaces the module's own file."""

    policy: Policy
    source: PolicySource
    since: Instant
    is_loaded: bool


class Policies:
    """The policy of one module (mutable).

    `on_changed` is called with every policy that replaces another one, `on_noted` also with the first one and with
    those that are refused, for the audit log.
    """

    def __init__(
        self,
        settings: ModuleSettings,
        *,
        on_changed: Callable[[Policy], None],
        on_noted: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._settings, self._own_file = settings, settings.policy_file
        self._timeouts = Timeouts(update_period_ns=settings.update_period_ns, lease_ns=settings.lease_ns)
        self._folder = settings.directory
        self._on_changed, self._on_noted = on_changed, on_noted
        self._in_force = self._begin()
        self._tell(self._in_force, "in force")

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._in_force.policy

    def document(self) -> Document:
        """Describe the policy in force; its file is null if the module has none of its own."""
        in_force = self._in_force
        return {
            "name": getattr(in_force.policy, "name", ""),
            "file": in_force.source.file,
            "sha256": in_force.source.sha256,
            "since": time_document(in_force.since),
            "loaded": in_force.is_loaded,
            "own_file": None if self._own_file is None else str(self._own_file),
        }

    def compiled(self, text: str, file: str) -> Policy:
        """Compile a policy without any other effect; raises PolicyError."""
        return PolicySource(file=file, text=text, timeouts=self._timeouts).policy()

    def load(self, text: str, file: str, *, by: Caller | None = None) -> None:
        """Replace the policy in force; raises PolicyError or OSError, and then nothing has changed."""
        source = PolicySource(file=file, text=text, timeouts=self._timeouts)
        policy, now = self._checked(source, by), Instant(time.time_ns())
        keep(self._folder, source, now=now)
        self._change(InForce(policy=policy, source=source, since=now, is_loaded=True), "loaded", by)

    def try_to_reload(self) -> None:
        """Reload the module's own file; errors are logged."""
        try:
            self.reload()
        except PolicyError:
            return
        except OSError as error:
            _LOG.error("%s: %s", self._folder / KEPT, error)

    def reload(self, *, by: Caller | None = None) -> None:
        """Reload the module's own file; raises PolicyError or OSError, and then nothing has changed."""
        in_force = self._own(by)
        with suppress(FileNotFoundError):
            (self._folder / KEPT).unlink()
            sync_folder(self._folder)
        self._change(in_force, "reloaded", by)

    def prepared(self, settings: ModuleSettings) -> Callable[[], str]:
        """Check the policy of changed settings, and return what puts it into force; raises PolicyError.

        A policy that an administrator loaded stays in force, with the new default timeouts; the file of the settings
        then follows at `reload`. The returned function says in a line what has changed; "" if nothing has.
        """
        timeouts = Timeouts(update_period_ns=settings.update_period_ns, lease_ns=settings.lease_ns)
        now, own = self._in_force, policy_source(settings.policy_file, timeouts=timeouts)
        source = replace(now.source, timeouts=timeouts) if now.is_loaded else own
        policy = source.policy()
        # Another machine waits for a restart, and the policy does not: it must suit both.
        running = replace(settings, machine=self._settings.machine)
        for each in (policy, own.policy()) if now.is_loaded else (policy,):
            check_terms(each, settings)
            check_terms(each, running)
        is_same = (source.text, source.file, timeouts) == (now.source.text, now.source.file, self._timeouts)

        def adopt() -> str:
            self._settings, self._own_file, self._timeouts = running, settings.policy_file, timeouts
            if is_same:
                return ""
            self._change(replace(now, policy=policy, source=source, since=Instant(time.time_ns())), "settings")
            return f"{source.file or 'no file'}, SHA-256 {source.sha256[:12] or 'none'}"

        return adopt

    def _change(self, in_force: InForce, what: str, by: Caller | None = None) -> None:
        self._in_force = in_force
        self._tell(in_force, what, by)
        self._on_changed(in_force.policy)

    def _tell(self, in_force: InForce, what: str, by: Caller | None = None) -> None:
        _log(in_force)
        self._on_noted(_entry_of(what, in_force.source, by))

    def _begin(self) -> InForce:
        """Return the policy that was loaded before a restart, or the own file if there is none or it is unusable.

        If there is no own file either, everybody would be accepted without anyone's decision: `UnusableStateError`.
        """
        try:
            in_force = self._loaded_before()
        except FileNotFoundError:
            return self._own(is_start=True)
        except (OSError, ValueError, PolicyError) as error:
            if self._own_file is None:
                raise UnusableStateError(f"{self._folder / KEPT} cannot be used: {error}\n{_WITHOUT_OWN}") from error
            _LOG.critical("%s cannot be used: %s\n%s", self._folder / KEPT, error, _BACK_TO_OWN % self._own_file)
            return self._own(is_start=True)
        _LOG.warning("a loaded policy replaces %s", self._own_file or "none")
        return in_force

    def _loaded_before(self) -> InForce:
        source, loaded_at = kept_in(self._folder, timeouts=self._timeouts)
        policy = self._checked(source, is_start=True)
        return InForce(policy=policy, source=source, since=loaded_at, is_loaded=True)

    def _own(self, by: Caller | None = None, *, is_start: bool = False) -> InForce:
        try:
            source = policy_source(self._own_file, timeouts=self._timeouts)
        except PolicyError as error:
            _LOG.error("policy %s is refused, and changes nothing: %s", self._own_file, error)
            self._on_noted(Entry(Kind.POLICY, "refused", by=by, about=str(self._own_file), why=str(error)))
            raise
        policy = self._checked(source, by, is_start=is_start)
        return InForce(policy=policy, source=source, since=Instant(time.time_ns()), is_loaded=False)

    def _checked(self, source: PolicySource, by: Caller | None = None, *, is_start: bool = False) -> Policy:
        """Return a policy; one by which tasks cannot run on the own machine is refused, or reported at a start.

        At a start it has been accepted before, and the host may not know its accounts yet. The starter of tasks looks
        for them again, and gives no task a wider network than the machine's.
        """
        try:
            policy = source.policy()
            self._check_terms(policy, source, is_start=is_start)
        except PolicyError as error:
            refused = f"policy {source.file}, SHA-256 {source.sha256}, is refused, and changes nothing"
            _LOG.error("%s:\n%s", refused, error)
            self._on_noted(_entry_of("refused", source, by)._replace(why=str(error)))
            raise
        return policy

    def _check_terms(self, policy: Policy, source: PolicySource, *, is_start: bool) -> None:
        try:
            check_terms(policy, self._settings)
        except PolicyError as error:
            if not is_start:
                raise
            _LOG.error(
                "tasks that policy %s maps or limits so do not start, or reach less:\n%s",
                source.file,
                error,
            )


def _entry_of(what: str, source: PolicySource, by: Caller | None) -> Entry:
    about = f"{source.file}, SHA-256 {source.sha256}" if source.text is not None else "no file: everybody is accepted"
    return Entry(Kind.POLICY, what, by=by, about=about)


def _log(in_force: InForce) -> None:
    if in_force.source.text is None:
        _LOG.info("no policy file: everybody is accepted")
    else:
        _LOG.info("policy %s, SHA-256 %s, is in force", in_force.source.file, in_force.source.sha256)
