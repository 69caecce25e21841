"""Handlers of the local API for the module's policy: showing the one in force, and replacing it."""

import os
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.daemon.api.requests import body_of, caller_of, refusal, uid_of
from messiahs.daemon.policies.in_force import Policies
from messiahs.errors import PolicyError, Problem, explained

FILE_LIMIT = 4_096


class LoadBody(msgspec.Struct, forbid_unknown_fields=True):
    """What to load: a text, with the name of its file for messages, or (None) the module's own file."""

    text: str | None = None
    file: Annotated[str, msgspec.Meta(max_length=FILE_LIMIT)] = ""


class PolicyApi:
    """The policy of the module. Files are never opened here; the client sends the text of a file."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [web.get("/v1/policy", self._policy), web.post("/v1/policy", self._load)]

    async def _policy(self, _: web.Request) -> web.Response:
        return web.json_response(self._policies.document())

    async def _load(self, request: web.Request) -> web.Response:
        """Load a policy; only root and the module's own user may. Mistakes in it are part of the answer."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may load its policy")
        problems: tuple[Problem, ...] = ()
        try:
            body = await body_of(request, LoadBody)
            if body.text is None:
                self._policies.reload(by=caller_of(request))
            else:
                self._policies.load(body.text, body.file, by=caller_of(request))
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request contains no policy: {error}")
        except OSError as error:
            return refusal(
                409, f"the policy could not be stored, and the present one stays in force: {explained(error)}"
            )
        except PolicyError as error:
            problems = error.problems
        listed = [{**problem.facts(), "text": str(problem)} for problem in problems]
        return web.json_response({**self._policies.document(), "problems": listed})


def is_owner(request: web.Request) -> bool:
    """Whether the request comes from root or the daemon's own user."""
    return uid_of(request) in {0, os.geteuid()}
