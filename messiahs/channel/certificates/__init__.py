"""Certificates: the own one, who may vouch for a peer, and the check of both directions (MESSIAHS 5.3)."""
