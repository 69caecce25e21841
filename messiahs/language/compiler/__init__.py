"""Compile the statements of a policy file to rules, block by block, with all checks."""
