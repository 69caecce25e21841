"""From the statements of a policy file to its rules, block by block, with every check on the way."""
