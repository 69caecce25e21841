"""Files that a topology names: policies, and roots that vouch for systems of other sites.

Paths are relative to the topology file.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from messiahs.config.regular_files import read_regular
from messiahs.config.topology.problems import Place, Problems
from messiahs.config.topology.yaml_places import Section
from messiahs.errors import PolicyError

if TYPE_CHECKING:
    from cryptography import x509

NamedFile = tuple[Path, Place]
"""A file, and the place at which the topology names it."""


def read_file_name(section: Section, key: str, *, folder: Path, problems: Problems) -> NamedFile | None:
    """Return the file under a key; None if the key is missing or, with a problem, its value is not a file name."""
    if key not in section:
        return None
    value, place = section.values[key], section.value_place(key)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        problems.add(section.key_place(key), f"`{key}` takes the name of a file, relative to the topology file")
        return None
    return folder.absolute() / value, place


def check_policies(named: Iterable[NamedFile], problems: Problems) -> None:
    """Add the problems of every policy once, with their places in the policy; `policy check` shows warnings."""
    # A topology without policies does not load the language.
    from messiahs.config.policies import read_policy  # noqa: PLC0415 # see above

    for path, place in named:
        if not path.exists():
            problems.add(place, f"there is no policy file {path}")
            continue
        try:
            read_policy(path)
        except PolicyError as error:
            problems.elsewhere.extend(str(problem) for problem in error.problems if not problem.is_warning)


def problem_with_roots(path: Path) -> str:
    """Return what is wrong with a file of trusted certificates; "" if it has at least one, and all are valid."""
    # An expensive import that a topology of one site never needs.
    from cryptography import x509  # noqa: PLC0415 # see above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 # as above

    try:
        content = read_regular(path)
    except OSError as error:
        return f"the trust file {path} cannot be read: {error.strerror}; put a copy of the other site's root.pem there"
    if b"PRIVATE KEY-----" in content:
        return (
            f"the trust file {path} contains a private key: the other site sent its root.key in place of root.pem, or "
            "with it. Delete it, and tell them: whoever has it can create members of their site"
        )
    try:
        roots = x509.load_pem_x509_certificates(content)
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return f"the trust file {path} contains no certificate in PEM, or an invalid one"
    if not all(_is_root(root) for root in roots):
        return f"the trust file {path} contains a certificate that is no root: ask the other site for its root.pem"
    return ""


def _is_root(certificate: "x509.Certificate") -> bool:
    """Whether a certificate may sign others."""
    from cryptography import x509  # noqa: PLC0415 # as above

    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except (x509.ExtensionNotFound, ValueError):
        # X.509 version 1 has no extensions.
        return True
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return False


def problem_with_copy(path: Path, own_roots: Path) -> str:
    """Return what is wrong with a file of another site's roots that is a copy of this site's root; "" if it is none.

    Roots of this site that do not exist yet, or cannot be read, are not compared; `module run` reports these. If
    tls/root.pem holds several roots, some may be the other site's, and no file counts as a copy.
    """
    from cryptography import x509  # noqa: PLC0415 # as above

    try:
        own = set(x509.load_pem_x509_certificates(read_regular(own_roots)))
    except (OSError, ValueError, x509.InvalidVersion):
        return ""
    if len(own) > 1 or set(x509.load_pem_x509_certificates(read_regular(path))) != own:
        return ""
    return f"{path} is a copy of the root of this site, {own_roots}: replace it with the root.pem of the other site"
