"""The document of the local API for an audit of the sums: every vector that was received and sent, at one instant."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update.exchanged import Exchanged, ExchangedWith
from messiahs.core.update.sums import VectorKey
from messiahs.core.vectors.vectors import Vector
from messiahs.daemon.storage.documents import Document, vector_document

_RELATIONS = ("is_parent", "is_primary_parent", "is_child", "is_primary_child", "is_sibling")


def exchanged_document(facts: Exchanged) -> Document:
    """Describe all vectors that a module exchanged; each vector is in `vectors` once, and named by its number."""
    table = _Table()
    document = {
        "name": facts.system,
        "own": table.place_of(facts.own),
        "counted_at": facts.counted_at,
        "is_in_place": facts.is_in_place,
        "period_ns": facts.period_ns,
        "neighbors": [_neighbor(each, table) for each in facts.neighbors],
    }
    return {**document, "sources": table.described, "vectors": [vector_document(each) for each in table.vectors]}


@dataclass(slots=True)
class _Table:
    """Vectors, and the sources of sums, each of which is described once (mutable): many neighbors get the same."""

    vectors: dict[Vector, int] = field(default_factory=dict)
    sources: dict[int, int] = field(default_factory=dict)
    """By the identity of the vectors that were heard, which live as long as the answer is made."""
    described: list[Document] = field(default_factory=list)

    def place_of(self, vector: Vector) -> int:
        """Return the number of a vector."""
        return self.vectors.setdefault(vector, len(self.vectors))

    def source_of(self, own: Vector, heard: Mapping[VectorKey, Vector]) -> int:
        """Return the number of the vectors from which a sum was computed."""
        known = self.sources.get(id(heard))
        if known is not None and self.described[known]["own"] == self.place_of(own):
            return known
        described = [
            {"name": name, "kind": _kind(kind), "vector": self.place_of(vector)}
            for (name, kind), vector in heard.items()
        ]
        self.described.append({"own": self.place_of(own), "heard": described})
        self.sources[id(heard)] = len(self.described) - 1
        return len(self.described) - 1


def _neighbor(each: ExchangedWith, table: _Table) -> Document:
    return {
        "name": each.neighbor.system,
        "relations": _relations(each.neighbor),
        "counted_as": _relations(each.counted),
        "is_linked": each.is_linked,
        "is_leaving": each.is_leaving,
        "received": {
            _kind(kind): {
                "vector": table.place_of(message.vector),
                "counted": message.counted,
                "hears": list(message.hears),
            }
            for kind, message in each.received.items()
        },
        "sent": {
            _kind(kind): {
                "vector": table.place_of(sent.message.vector),
                "counted": sent.message.counted,
                "source": table.source_of(sent.own, sent.heard),
                "is_withheld": sent.is_withheld,
            }
            for kind, sent in each.sent.items()
        },
    }


def _relations(neighbor: Neighbor) -> list[str]:
    return [name for name in _RELATIONS if getattr(neighbor, name)]


def _kind(kind: VectorKind) -> str:
    return kind.name.lower()
