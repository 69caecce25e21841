"""Handlers of the local API about the module's policy: which one is in force, and another one in its place."""

import os
from typing import Annotated

import msgspec
from aiohttp import web

from messiahs.daemon.api.requests import body_of, refusal, uid_of
from messiahs.daemon.policies.in_force import Policies
from messiahs.errors import PolicyError, Problem

FILE_LIMIT = 4_096


class LoadBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be loaded: a text, with the name of its file for messages, or (None) the module's own file again."""

    text: str | None = None
    file: Annotated[str, msgspec.Meta(max_length=FILE_LIMIT)] = ""


class PolicyApi:
    """The policy of the module; a file that a user names is never opened here, the client sends its text."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def routes(self) -> list[web.RouteDef]:
        """Give the paths and their handlers."""
        return [web.get("/v1/policy", self._policy), web.post("/v1/policy", self._load)]

    async def _policy(self, _: web.Request) -> web.Response:
        return web.json_response(self._policies.document())

    async def _load(self, request: web.Request) -> web.Response:
        """Load a policy; only the module's own user and root may. With mistakes in it, they are the answer."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may load its policy")
        problems: tuple[Problem, ...] = ()
        try:
            body = await body_of(request, LoadBody)
            if body.text is None:
                self._policies.reload()
            else:
                self._policies.load(body.text, body.file)
        except msgspec.MsgspecError as error:
            return refusal(400, f"this is no policy to load: {error}")
        except OSError as error:
            return refusal(409, f"the policy could not be kept, and the running one stays: {error}")
        except PolicyError as error:
            problems = error.problems
        told = [{**problem.facts(), "text": str(problem)} for problem in problems]
        return web.json_response({**self._policies.document(), "problems": told})


def is_owner(request: web.Request) -> bool:
    """Say whether root or the daemon's own user asks."""
    return uid_of(request) in {0, os.geteuid()}
