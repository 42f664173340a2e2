"""A row as JSON: timestamps end in +0000, compound fields are objects of their parts, blobs are URLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.objects import ID, ObjectType, Row

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
Show = Callable[[Row], Any]


def renderer(object_type: ObjectType, fields: Sequence[Field], version: str, now: str) -> Callable[[Row], Any]:
    """A function that renders rows."""
    base = f"/services/data/{version}/sobjects/{object_type.name}"
    shows = [(field.name, _show(object_type, field, base, now)) for field in fields]

    def render(row: Row) -> dict[str, Any]:
        attributes = {"type": object_type.name, "url": f"{base}/{row[ID]}"}
        return {"attributes": attributes, **{name: show(row) for name, show in shows}}

    return render


def _show(object_type: ObjectType, field: Field, base: str, now: str) -> Show:
    if field.formula:
        return lambda row: object_type.values(row, now)[field.name]
    if field.kind in ("address", "location"):
        slots = [(label[0].lower() + label[1:], object_type.slots[part]) for label, part in field.members]
        return lambda row: _compound({label: row[slot] for label, slot in slots})
    slot = object_type.slots[field.name]
    if field.kind == "datetime":
        return lambda row: row[slot] and f"{row[slot][:-1]}+0000"
    if field.kind == "anyType":
        return lambda row: any_value(row[slot])
    if field.kind == "base64":
        return lambda row: row[slot] and f"{base}/{row[ID]}/{field.name}"
    return lambda row: row[slot]


def any_value(value: Any) -> Any:
    """As a value of its own type: a checkbox is a JSON boolean, a number a JSON number."""
    return f"{value[:-1]}+0000" if isinstance(value, str) and TIMESTAMP.fullmatch(value) else value


def _compound(members: dict[str, Any]) -> dict[str, Any] | None:
    return None if set(members.values()) == {None} else members
