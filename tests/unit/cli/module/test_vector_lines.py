"""Vectors for people."""

from messiahs.cli.module.preview import vector_lines

GIB = 1 << 30


def test_values_are_in_the_units_of_people() -> None:
    attributes = {
        "load": [8_192, 10_239],
        "avail_mem": [20 * GIB, 24 * GIB],
        "total_mem": [GIB // 2, 2 * GIB],
        "total_disk": [GIB, GIB],
        "slots": [2, 2],
        "speed": [100, 400],
        "os": "Linux",
        "arch": None,
    }
    vector = {"machines": 1, "classes": [{"count": 1, "attributes": attributes, "some_lack": ["slots"]}]}
    title, line = vector_lines("sent to parents", vector)
    assert title == "sent to parents: 1 machine"
    assert line.removeprefix("  1 x ").split(", ") == [
        "arch various",
        "avail_mem 20 to 24 GiB",
        "load 82 to 102 %",
        "os Linux",
        "slots 2 (not all)",
        "speed 100 to 400",
        "total_disk 1 GiB",
        "total_mem 512 MiB to 2 GiB",
    ]
