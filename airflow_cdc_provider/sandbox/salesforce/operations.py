"""What a transaction has done so far, statement by statement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row

Kind = Literal["CREATE", "UPDATE", "DELETE", "UNDELETE"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of one record. ``second`` is when the statement ran, whenever its transaction commits.

    ``user`` changed it; ``origin`` names the API and client, empty for what the org does by itself. ``as_gap``: the
    event that tells of it cannot be made. ``system``: the org did it by itself, LastModifiedDate stays.
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
    """The object may have changed between the statement and the commit."""
    if operation.type is current:
        return operation
    before = None if operation.before is None else current.fit(operation.before)
    return replace(operation, type=current, before=before, after=current.fit(operation.after))


@dataclass(frozen=True, slots=True)
class Purge:
    """A record leaves the Recycle Bin for good. No event tells of it."""

    type: ObjectType
    id: str
    second: str
