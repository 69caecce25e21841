"""The certificate, key, roots and revocations of a live module: read again when they change, and renewed in time."""
