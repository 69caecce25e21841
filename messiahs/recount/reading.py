"""Facts from the documents of the local API (`GET /v1/vectors/exchanged`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from messiahs.recount.facts import Key, Kind, Machines, Module, Neighbor, Received, Relations, Sent, Value, Vector

Document = Mapping[str, Any]


def module_of(document: Document) -> Module:
    """Return the facts in the document of one module."""
    vectors = [vector_of(each) for each in document["vectors"]]
    sources = [(vectors[each["own"]], _heard(each["heard"], vectors)) for each in document["sources"]]
    neighbors = (_neighbor(each, vectors, sources) for each in document["neighbors"])
    return Module(
        name=document["name"],
        own=vectors[document["own"]],
        counted_at=document["counted_at"],
        is_in_place=document["is_in_place"],
        period_ns=document["period_ns"],
        neighbors={neighbor.name: neighbor for neighbor in neighbors},
    )


def vector_of(document: Document) -> Vector:
    """Return a vector as a multiset of classes."""
    times: dict[Machines, int] = {}
    for each in document["classes"]:
        attributes = tuple((name, _value(value)) for name, value in sorted(each["attributes"].items()))
        one = Machines(each["count"], attributes, tuple(sorted(each["some_lack"])))
        times[one] = times.get(one, 0) + 1
    return frozenset(times.items())


def _value(value: list[int] | str | None) -> Value:
    return (value[0], value[1]) if isinstance(value, list) else value


def _heard(documents: Sequence[Document], vectors: Sequence[Vector]) -> Mapping[Key, Vector]:
    return {(each["name"], Kind(each["kind"])): vectors[each["vector"]] for each in documents}


def _neighbor(
    document: Document, vectors: Sequence[Vector], sources: Sequence[tuple[Vector, Mapping[Key, Vector]]]
) -> Neighbor:
    return Neighbor(
        name=document["name"],
        relations=Relations(**dict.fromkeys(document["relations"], True)),
        counted=Relations(**dict.fromkeys(document["counted_as"], True)),
        is_linked=document["is_linked"],
        is_leaving=document["is_leaving"],
        received={
            Kind(kind): Received(vector=vectors[each["vector"]], counted=each["counted"], hears=tuple(each["hears"]))
            for kind, each in document["received"].items()
        },
        sent={
            Kind(kind): Sent(
                vector=vectors[each["vector"]],
                counted=each["counted"],
                own=sources[each["source"]][0],
                heard=sources[each["source"]][1],
                is_withheld=each["is_withheld"],
            )
            for kind, each in document["sent"].items()
        },
    )
