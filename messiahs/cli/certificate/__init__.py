"""`messiahs certificate …`: requests, signatures, renewals and revocations."""
