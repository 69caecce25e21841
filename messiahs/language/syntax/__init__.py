"""The text of policy files: words, statements, syntax trees, canonical form, and the problems found in them."""
