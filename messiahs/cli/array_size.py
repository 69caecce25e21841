"""The options that say how many tasks a submission has: numbers, or the lines of a file."""

from messiahs.client.members import Members
from messiahs.config.array_numbers import array_numbers
from messiahs.config.text_files import lines_of


def numbered(text: str) -> Members:
    """Read the numbers of an array: members 1, 2, … have them in ascending order, each once, as items."""
    return Members.of_array(array_numbers(text))


def each_line(file: str) -> Members:
    """Read one item from each line of a file (`-`: standard input), skipping empty lines."""
    return Members.of_items(lines_of(file))
