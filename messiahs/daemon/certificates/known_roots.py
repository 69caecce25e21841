"""What the core knows of certificates: who vouches for this module, and for which systems others vouch."""

import logging
from dataclasses import replace
from typing import Final

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.certificates.trusted_roots import other_sites, own_key, trust_of
from messiahs.config.settings import ModuleSettings
from messiahs.core.interface.events import RootsChanged
from messiahs.errors import ChannelError

_LOG: Final = logging.getLogger(__name__)


def known_roots(settings: ModuleSettings, tls: TlsMaterial) -> RootsChanged:
    """Return what the core is to know of the certificates of a module with these settings.

    Raises ChannelError or ValueError if a certificate cannot be read.
    """
    apart = tuple(link.neighbor.system for link in settings.neighbors if tls.has_other_roots(link.neighbor.system))
    return RootsChanged(
        key=own_key(tls),
        trust=replace(trust_of(tls), trusts_relays=settings.trusts_relays),
        apart=apart,
        apart_roots=tuple(tuple(map(certificate_fingerprint, certificates_in(tls.roots_for(each)))) for each in apart),
        other_sites=other_sites(tls),
    )


def changed_roots(settings: ModuleSettings, tls: TlsMaterial) -> RootsChanged | None:
    """Return the same after a change of files, while the module runs; None if a certificate cannot be read.

    The core then goes on with what it knows, and the log says so.
    """
    try:
        return known_roots(settings, tls)
    except (ChannelError, ValueError) as error:
        _LOG.warning("the roots for searches and tasks stay as they were: %s", error)
        return None
