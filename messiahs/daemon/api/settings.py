"""The local API for changed settings: a running module takes over what it can, and says what waits for its restart."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aiohttp import web

from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.config.topology.differences import Difference, Subject, differences
from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, PrimaryParentChanged, SettingsApplied
from messiahs.core.interface.membership_rows import RemovalCause
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import caller_of, refusal
from messiahs.daemon.audit.entries import Entry, Kind
from messiahs.daemon.host.host import Host
from messiahs.daemon.policies.in_force import Policies
from messiahs.daemon.storage.documents import Document
from messiahs.errors import MessiahsError, PolicyError

_LOG = logging.getLogger(__name__)
_AGAIN_SECONDS = 1.0
Neighbors = tuple[tuple[Neighbor, str], ...]
"""Neighbors, each with the address where this module dials it ("": it dials)."""
_NOT_THE_OWNER = "only root and the user of this module may change its settings"


class SettingsApi:
    """Reads the module's settings file again. Only root and the module's own user may ask for that (mutable).

    `running` are the settings that the module works with: those of its start, with what was taken over since.
    """

    def __init__(self, host: Host, policies: Policies, running: ModuleSettings) -> None:
        self._host, self._policies, self._running = host, policies, running
        self._file = running.directory / "settings.json"
        self._alone = asyncio.Lock()
        self._completing: asyncio.Task[None] | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/settings", self._apply)]

    def listed(self, system: SystemId) -> tuple[Neighbor, str] | None:
        """Return a neighbor as the settings in force have it, with the address where it is dialed ("": it dials)."""
        links = (link for link in self._running.neighbors if link.neighbor.system == system)
        return next(((link.neighbor, link.address or "") for link in links), None)

    async def apply_at_start(self) -> None:
        """Add the neighbors of the file again that had ended the link, or will have: as `topology apply` does.

        What people have removed or changed stays as it is.
        """
        async with self._alone:
            for text in self._returning(self._running):
                _LOG.info("settings: %s", text)
            problem = await self._change_neighbors(self._running)
        if problem:
            _LOG.warning("settings: the neighbors of the file are not applied: %s", problem)

    async def _apply(self, request: web.Request) -> web.Response:
        """Check everything first; after a refusal, nothing has changed. A repetition changes nothing."""
        if not is_owner(request):
            return refusal(403, _NOT_THE_OWNER)
        async with self._alone:
            try:
                new = load_settings(self._file)
                if (new.name, new.federation) != (self._running.name, self._running.federation):
                    text = f"{self._file} has the settings of {new.name} of {new.federation}, not of this module"
                    return refusal(409, text)
                put_policy_into_force = self._policies.prepared(new)
            except PolicyError as error:
                return refusal(409, f"the policy {new.policy_file} is refused, and nothing has changed: {error}")
            except MessiahsError as error:
                return refusal(409, str(error))
            found, returning = tuple(differences(self._running, new)), tuple(self._returning(new))
            problem = await self._change_neighbors(new)
            if problem:
                return refusal(507, problem)
            policy = put_policy_into_force()
            self._take_over(new)
        about = "; ".join(str(each) for each in found) or "nothing has changed"
        self._host.note(Entry(Kind.MEMBER, "settings", by=caller_of(request), about=about))
        for each in found:
            _LOG.info("settings: %s%s", each, " (after a restart)" if each.needs_restart else "")
        return web.json_response(self._document(found, policy, returning))

    async def _change_neighbors(self, new: ModuleSettings) -> str:
        """Change the neighbors, and return why that was not possible; another primary parent is handed over first."""
        if self._completing is not None:
            self._completing.cancel()
        wanted = tuple((link.neighbor, link.address or "") for link in new.neighbors)
        parent, before = _primary(each for each, _ in wanted), self._primary_parent()
        asked = _primary(link.neighbor for link in self._running.neighbors)
        handover: _Handover | None = None
        if self._is_handing_over():
            # What it began goes on, and then follows what is wanted now.
            problem = ""
        elif parent is None or before is None or parent in (before, asked):
            problem = await self._ask_to_apply(wanted)
        else:
            running = tuple((link.neighbor, link.address or "") for link in self._running.neighbors)
            handover = _Handover(parent=parent, before=before_handover(running, wanted, parent=parent))
            problem = await self._begin(handover)
        if not problem:
            self._completing = asyncio.create_task(self._complete(wanted, handover))
        return problem

    async def _begin(self, handover: "_Handover") -> str:
        """Begin a handover, and return why that is not possible; a parent whose link is being ended is waited for."""
        problem = await self._ask_to_apply(handover.before)
        if problem or self._is_leaving(handover.parent):
            return problem

        def change(answer_to: AnswerTo) -> PrimaryParentChanged:
            text = "by the topology file"
            return PrimaryParentChanged(answer_to=answer_to, parent=handover.parent, text=text, is_by_file=True)

        return (await self._host.ask(change)).problem

    async def _complete(self, wanted: Neighbors, handover: "_Handover | None") -> None:
        """Apply the neighbors until all are there: after a handover, and when an earlier link with them has ended.

        A handover removes the siblings of before, and so do others that leave; one that is wanted is added again.
        """
        while handover is not None and self._is_leaving(handover.parent):
            await asyncio.sleep(_AGAIN_SECONDS)
            if not self._is_leaving(handover.parent):
                await self._begin(handover)
        is_first = self._is_handing_over()
        while is_first or self._lacking(wanted):
            await asyncio.sleep(_AGAIN_SECONDS)
            is_possible = is_first or any(not self._is_leaving(each) for each in self._lacking(wanted))
            if is_possible and not self._is_handing_over():
                await self._ask_to_apply(wanted)
                is_first = False

    def _primary_parent(self) -> SystemId | None:
        """Return the primary parent of now, unless it is being left."""
        present = queries.neighbors_of(self._host.module.state).values()
        return _primary(each for each in present if not self._is_leaving(each.system))

    def _lacking(self, wanted: Neighbors) -> frozenset[SystemId]:
        """Return the neighbors that are not as wanted, but for those that people changed or removed at run time."""
        present = queries.neighbors_of(self._host.module.state)
        members, removed = queries.members_of(self._host.module.state), queries.removed_from(self._host.module.state)
        left = {each.system for each, _ in wanted if present.get(each.system) != each or self._is_leaving(each.system)}
        changed = {system for system, row in members.items() if row.is_by_people and not self._is_leaving(system)}
        by_hand = {system for system, row in removed.items() if row.is_by_people}
        return frozenset(left - changed - by_hand)

    def _is_leaving(self, system: SystemId) -> bool:
        row = queries.removed_from(self._host.module.state).get(system)
        return row is not None and not row.is_ended

    def _is_handing_over(self) -> bool:
        row = queries.handover_of(self._host.module.state)
        return row is not None and not row.is_done

    async def _ask_to_apply(self, neighbors: Neighbors) -> str:
        def change(answer_to: AnswerTo) -> SettingsApplied:
            return SettingsApplied(answer_to=answer_to, neighbors=neighbors)

        return (await self._host.ask(change)).problem

    def _take_over(self, new: ModuleSettings) -> None:
        """Note what runs now; the rest is reported again at the next request, until the module is restarted."""
        trusts = {link.neighbor.system: link.trust for link in self._running.neighbors}
        self._running = replace(
            self._running,
            neighbors=tuple(replace(link, trust=trusts.get(link.neighbor.system, ())) for link in new.neighbors),
            policy_file=new.policy_file,
            update_period_ns=new.update_period_ns,
        )

    def _returning(self, new: ModuleSettings) -> Iterator[str]:
        """Yield which neighbors are added again that had ended the link, or were left with the primary parent."""
        removed = queries.removed_from(self._host.module.state)
        for system in sorted({link.neighbor.system for link in new.neighbors} & removed.keys()):
            if removed[system].cause is RemovalCause.CONSEQUENCE:
                reason = f" ({removed[system].text})" if removed[system].text else ""
                until = f"it is linked once {system} has {new.name} as a neighbor"
                yield f"the link with {system} had ended{reason}, and the file lists it: it is added again, and {until}"

    def _document(self, found: tuple[Difference, ...], policy: str, returning: tuple[str, ...]) -> Document:
        return {
            "name": self._running.name,
            # What the policy file contained before is not known from the settings.
            "applied": [str(each) for each in found if not each.needs_restart and each.subject is not Subject.POLICY]
            + ([f"policy: {policy}"] if policy else []),
            "waiting": [str(each) for each in found if each.needs_restart],
            "kept": [*returning, *self._kept()],
        }

    def _kept(self) -> Iterator[str]:
        """Yield where the module differs from its file because of what people did at run time, which wins."""
        listed = {link.neighbor.system for link in self._running.neighbors}
        removed, members = queries.removed_from(self._host.module.state), queries.members_of(self._host.module.state)
        for system in sorted(listed):
            row = removed.get(system)
            if row is not None and row.is_by_people:
                reason = f" ({row.text})" if row.text else ""
                command = f"`messiahs neighbor on {system} --module {self._running.name}`"
                what = "was removed" if row.is_ended else "is being removed"
                yield f"{system} {what} at run time{reason}, and the file lists it; {command} brings it back"
        for system, member in sorted(members.items()):
            if system not in removed and system not in listed and member.is_by_people:
                yield f"{system} joined as {member.neighbor.relation.value}, and is not in the file"
            elif system in listed and member.is_by_people and _relations(self._running, system) != member.neighbor:
                yield f"{system} has other relations since they were changed at run time than the file says"
        if self._policies.document()["loaded"]:
            yield "a loaded policy is in force in place of the own file; `policy load` without a file ends that"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Handover:
    """Another primary parent that is to count this system, and the neighbors until it does."""

    parent: SystemId
    before: Neighbors


def before_handover(running: Neighbors, wanted: Neighbors, *, parent: SystemId) -> Neighbors:
    """Return the neighbors while another primary parent is not counting yet: all that run, and the wanted ones.

    The new parent is one like others until then. Siblings share the primary parent, so new ones follow it.
    """
    kept = {each.system: (each, address) for each, address in running}
    for neighbor, address in wanted:
        relations = neighbor
        if neighbor.system in kept:
            relations = replace(kept[neighbor.system][0], is_parent=neighbor.is_parent, is_child=neighbor.is_child)
        elif not (neighbor.is_parent or neighbor.is_child):
            continue
        if neighbor.system == parent:
            relations = replace(relations, is_parent=True, is_primary_parent=False)
        elif relations.is_primary_parent:
            relations = replace(relations, is_parent=True)
        kept[neighbor.system] = (relations, address)
    return tuple(kept.values())


def _primary(neighbors: Iterable[Neighbor]) -> SystemId | None:
    return next((each.system for each in neighbors if each.is_primary_parent), None)


def _relations(settings: ModuleSettings, system: str) -> object:
    return next(link.neighbor for link in settings.neighbors if link.neighbor.system == system)
