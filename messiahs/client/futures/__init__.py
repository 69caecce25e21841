"""Python functions as tasks: an executor of `concurrent.futures` whose calls run anywhere in the federation."""
