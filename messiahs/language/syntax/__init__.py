"""The text of policy files: words, statements, trees, their one form, and the mistakes in them."""
