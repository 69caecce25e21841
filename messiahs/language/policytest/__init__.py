"""Tests of policies: reading and running `.policytest` files."""
