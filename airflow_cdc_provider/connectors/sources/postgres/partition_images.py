"""What the old images of a partitioned table contain. Pure.

A change of a partition has the name of its table, and the letter of its table's replica identity. But its old image has
only the values that the partition's own replica identity logs; the others are NULL in it. The server sends the relation
of a partition directly after that of its table: before the first change of the partition in a session, and again after
each alteration of either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.messages import Relation

IMAGE = 5
"""Offset of the letter of the first image in a row change."""


class PartitionImages:
    """Takes the messages of a session in order: ``relation`` each relation message, ``changes`` each row change, and
    ``other`` each message of another kind but types."""

    def __init__(self) -> None:
        self._latest: tuple[bytes, bytes] = (b"", b"")
        self._lesser: dict[int, dict[int, frozenset[str]]] = {}
        self._images: dict[int, LesserImages] = {}

    def relation(self, data: bytes) -> None:
        self._latest = (self._latest[1], data)

    def other(self) -> None:
        self._latest = (b"", b"")

    def change(self, oid: int) -> bytes:
        """Before a change of the table ``oid``: its relation message, if it now logs other values than before."""
        table, partition = self._latest
        self.other()
        if not table or messages.relation_of(table) != oid:
            return b""
        logged = _logged(root := messages.parse_relation(table))
        part = messages.parse_relation(partition)
        lesser = self._lesser.setdefault(oid, {})
        before = dict(lesser)
        lesser.pop(part.oid, None)
        # The server refuses changes of rows in a partition without a replica identity.
        if (own := _logged(part)) and not own >= logged:
            lesser[part.oid] = own
        self._images[oid] = LesserImages.of(root, lesser.values())
        return table if lesser != before else b""

    def logged(self, data: bytes) -> bytes:
        """The relation message ``data``, with the replica identity that all partitions of the table log."""
        lesser = self._lesser.get(messages.relation_of(data))
        return messages.with_identity(data, frozenset.intersection(*lesser.values())) if lesser else data

    def images(self, oid: int) -> LesserImages | None:
        """None if all old images of the table are what their letters say."""
        return self._images[oid] if self._lesser.get(oid) else None


@dataclass(frozen=True)
class LesserImages:
    """``absent``: for partitions that log less than their table, the indexes of the cells that are NULL in their
    images."""

    absent: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, table: Relation, logged: Iterable[frozenset[str]]) -> LesserImages:
        names = [attribute.name for attribute in table.attributes]
        return cls(tuple(tuple(index for index, name in enumerate(names) if name not in own) for own in logged))

    def marked(self, data: bytes) -> bytes:
        """A row change whose old image may be one of those partitions' gets the letter of an image of the key."""
        if data[IMAGE : IMAGE + 1] != bytes([messages.OLD]):
            return data
        try:
            old = messages.parse_row_change(data).old or []
            lacks = any(all(old[index] is None for index in absent) for absent in self.absent)
        except messages.MALFORMED:  # the reader of the row says so
            return data
        return data[:IMAGE] + bytes([messages.KEY]) + data[IMAGE + 1 :] if lacks else data


def _logged(relation: Relation) -> frozenset[str]:
    return frozenset(attribute.name for attribute in relation.attributes if attribute.identity)
