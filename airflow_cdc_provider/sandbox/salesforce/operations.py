"""The operations of a transaction, in the order of its statements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row

Kind = Literal["CREATE", "UPDATE", "DELETE", "UNDELETE"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of one record. ``second`` is the time of the statement, not of the commit.

    ``origin`` names the API and client of ``user``; it is empty for changes by the org. ``as_gap``: the event is a gap
    event. ``system``: a change by the org, which does not update LastModifiedDate.
    """

    kind: Kind
    type: ObjectType
    id: str
    before: Row | None
    after: Row
    second: str
    user: str
    origin: str
    as_gap: bool = False
    system: bool = False


def fitted(operation: Operation, current: ObjectType) -> Operation:
    """The operation with the current definition of the object, which may differ from that of the statement."""
    if operation.type is current:
        return operation
    before = None if operation.before is None else current.fit(operation.before)
    return replace(operation, type=current, before=before, after=current.fit(operation.after))


@dataclass(frozen=True, slots=True)
class Purge:
    """A record is removed from the Recycle Bin, without an event."""

    type: ObjectType
    id: str
    second: str
