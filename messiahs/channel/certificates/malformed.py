"""Documents of others that cryptography cannot read: one exception in place of its many."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def malformed_as_value_error() -> Iterator[None]:
    """Raise a `ValueError` in place of whatever cryptography raises for a document that is malformed or unusual.

    Its exceptions for missing and repeated extensions, kinds of names, versions and algorithms have no base class.
    """
    from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above

    try:
        yield
    except (
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
        x509.InvalidVersion,
        UnsupportedAlgorithm,
    ) as error:
        raise ValueError(str(error)) from error
