"""The policy for schema changes: what the replicator does at each kind of change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange


class OnChange(StrEnum):
    """``apply``: without an operator. ``ask``: the table waits until an operator has answered. ``stop``: the table is
    blocked."""

    APPLY = "apply"
    ASK = "ask"
    STOP = "stop"


class OnDrop(StrEnum):
    """``keep``: the column and its values stay in the target. ``set_null``: the column stays, without values. ``drop``:
    the target drops it, too."""

    KEEP = "keep"
    SET_NULL = "set_null"
    DROP = "drop"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True)
class SchemaPolicy:
    """A key that is absent has the value of the replicator, or its default."""

    add_column: OnChange | None = doc("A new column. Default `apply`: the target gets it.", None)
    drop_column: OnDrop | None = doc(
        "A dropped column. Default `keep`: it stays in the target, with the values that it has; `set_null`: it stays, "
        "and its values are removed; `drop`: the target drops it, too.",
        None,
    )
    widen: OnChange | None = doc(
        "A type that becomes wider without a change of any value: integers and numbers with more digits, `float` to "
        "`double`, `date` to `timestamp`. Default `apply`: the target alters the column, if it can, else the table is "
        "blocked.",
        None,
    )
    narrow: OnChange | None = doc(
        "Any other change of a type or of values by a statement. Default `stop`; `apply` copies the table again.", None
    )
    rename: OnChange | None = doc(
        "A renamed column or table. Default `stop`; `apply` renames the column of the target, if the source has ids of "
        "columns and the target can, else the table is blocked; a renamed table keeps the name of its copy.",
        None,
    )
    change_key: OnChange | None = doc(
        "Other columns identify a row. Default `stop`; `apply` copies the table again.", None
    )
    truncate: OnChange | None = doc(
        "All rows leave the source at once, by TRUNCATE. Default `apply`: they leave the target, too.", None
    )

    def over(self, base: SchemaPolicy) -> SchemaPolicy:
        """This policy, with the values of ``base`` for keys that are absent."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return SchemaPolicy(**{name: getattr(base, name) if value is None else value for name, value in own.items()})

    def of(self, kind: ChangeKind) -> OnChange | OnDrop:
        chosen: OnChange | OnDrop | None = getattr(self, kind.value)
        default: OnChange | OnDrop = DEFAULTS[kind]
        return default if chosen is None else chosen

    def passes(self, changes: Iterable[SchemaChange]) -> bool:
        """Whether the changes may happen within a batch: columns are added, or dropped and kept."""
        passing = {ChangeKind.ADD_COLUMN: OnChange.APPLY, ChangeKind.DROP_COLUMN: OnDrop.KEEP}
        return all(self.of(change.kind) is passing.get(change.kind) for change in changes)

    @property
    def asks(self) -> bool:
        """Whether an operator is asked about some kind of change."""
        return any(self.of(kind).value == OnChange.ASK.value for kind in ChangeKind)


DEFAULTS: dict[ChangeKind, Any] = {
    ChangeKind.ADD_COLUMN: OnChange.APPLY,
    ChangeKind.DROP_COLUMN: OnDrop.KEEP,
    ChangeKind.WIDEN: OnChange.APPLY,
    ChangeKind.NARROW: OnChange.STOP,
    ChangeKind.RENAME: OnChange.STOP,
    ChangeKind.CHANGE_KEY: OnChange.STOP,
    ChangeKind.TRUNCATE: OnChange.APPLY,
}
