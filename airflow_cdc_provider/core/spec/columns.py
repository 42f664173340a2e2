"""Which columns of a table are copied, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.spec.fields import Scalar, doc

TEXT_CAST = "text"


class Metadata(StrEnum):
    SOURCE_TABLE = "source_table"
    COMMIT_TIME = "commit_time"
    OPERATION = "operation"


OF_CHANGES = (Metadata.COMMIT_TIME, Metadata.OPERATION)
"""Metadata of the last change of a row: images of the row before a change lack them."""


@dataclass(frozen=True)
class AddedColumn:
    name: str = doc("Name of the column in the target.", form="column")
    value: Scalar | None = doc("The same value in every row: text, a number, or true or false.", None)
    metadata: Metadata | None = doc(
        "`source_table`: name of the source table. `commit_time` and `operation`: of the last insert or update of the "
        "row since its copy; a copied row has NULL and `read`.",
        None,
    )


@dataclass(frozen=True)
class Columns:
    """All names are those of the source, except the new names of ``rename`` and ``add``."""

    include: tuple[str, ...] = doc(
        "Columns to copy; all others are omitted. Not together with `exclude`.", tuple, non_empty=True
    )
    exclude: tuple[str, ...] = doc("Columns to omit. Their values never reach staging or target.", tuple)
    plain: tuple[str, ...] = doc("New columns of a `sensitive` table that are copied as they are.", tuple)
    cast: dict[str, str] = doc(
        "Column -> its type in the target. `text` is the value exactly as the source formats it. Into other types a "
        "value is only converted without loss; other values follow `on_unrepresentable`.",
        dict,
        form="cast",
    )
    hash: tuple[str, ...] = doc(
        "Columns of which the target has a keyed hash as text: HMAC-SHA-256 with the key of `hash_connection`.", tuple
    )
    mask: dict[str, int] = doc(
        "Column -> how many of its last characters remain, after `****`; none of a value that is shorter than twice "
        "that number.",
        dict,
        form="characters",
        minimum=0,
        maximum=100,
    )
    truncate: dict[str, int] = doc(
        "Column of text -> how many of its first characters remain.", dict, form="length", minimum=1, maximum=1_000_000
    )
    rename: dict[str, str] = doc("Column -> its name in the target.", dict, form="column")
    add: tuple[AddedColumn, ...] = doc("Columns that the source does not have.", tuple)

    @property
    def as_text(self) -> frozenset[str]:
        """Columns that the source delivers as text."""
        return frozenset(name for name, kind in self.cast.items() if kind == TEXT_CAST)

    @property
    def converted(self) -> dict[str, str]:
        """The casts to other types."""
        return {name: kind for name, kind in self.cast.items() if kind != TEXT_CAST}

    @property
    def of_changes(self) -> tuple[str, ...]:
        """Added columns that tell of the last change of a row: a copied row does not have their values."""
        return tuple(added.name for added in self.add if added.metadata in OF_CHANGES)

    @property
    def hidden(self) -> frozenset[str]:
        """Columns of the source whose values are stored only in part, or not at all."""
        return frozenset({*self.hash, *self.mask, *self.truncate})
