"""Mistakes in a policy as the JSON document of `--json`."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from messiahs.cli.output import print_document
from messiahs.errors import PolicyError


@contextmanager
def problems_as_json(*, as_json: bool) -> Iterator[None]:
    """With `as_json`, print the problems of a PolicyError as `{"problems": […]}` and exit with 1."""
    try:
        yield
    except PolicyError as error:
        if not as_json:
            raise
        print_document({"problems": [problem.facts() for problem in error.problems]})
        raise click.exceptions.Exit(1) from error
