"""Handlers of the local API for the module's certificate: showing the one in force, and renewing it."""

from aiohttp import web

from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import caller_of, refusal
from messiahs.daemon.audit.entries import Entry, Kind
from messiahs.daemon.certificates.keeping import Certificates
from messiahs.daemon.host.host import Host
from messiahs.errors import MessiahsError, explained


class CertificateApi:
    """The certificate of the module."""

    def __init__(self, certificates: Certificates, host: Host) -> None:
        self._certificates, self._host = certificates, host

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [web.get("/v1/certificate", self._certificate), web.post("/v1/certificate/renew", self._renew)]

    async def _certificate(self, _: web.Request) -> web.Response:
        return web.json_response(self._certificates.document())

    async def _renew(self, request: web.Request) -> web.Response:
        """Renew the certificate; only root and the module's own user may."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may renew its certificate")
        try:
            is_another = await self._certificates.renewal.renew()
        except MessiahsError as error:
            return refusal(409, f"the certificate is not renewed: {error}")
        except OSError as error:
            return refusal(409, f"the certificate is not renewed: {explained(error)}")
        if is_another:
            self._host.note(Entry(Kind.MEMBER, "certificate renewed", by=caller_of(request), about="the module's own"))
        return web.json_response(self._certificates.document())
