"""Tests of policies: `.policytest` files, read and tried."""
