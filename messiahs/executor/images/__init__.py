"""Images of containers in OCI layout: reading their archives, and unpacking their layers. All of it is untrusted."""
