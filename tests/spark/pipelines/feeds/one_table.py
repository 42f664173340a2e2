"""Changes of one table of PostgreSQL, as Debezium sends them, made one by one."""

from __future__ import annotations

from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats.debezium_messages import envelope, field, key_schema, message, pg, with_schema

TABLE = "inv.s"


def change(
    lsn: int, op: str, key: int | None = None, v: str = "", w: str = "w", /, column: str = "v", **more: str
) -> Message:
    """``op``: of Debezium. ``lsn``: each change is a transaction. ``column``: the name of ``v``. ``more``: added
    columns."""
    row = None if key is None else {"id": key, column: v, "w": w, **more}
    before, after = (row, None) if op == "d" else (None, row)
    source = pg(lsn=lsn, sequence=f'["{lsn - 1}","{lsn}"]')
    payload = envelope(op, before, after, source, None)
    keyed = None if key is None else key_schema({"id": key})
    fields = (field("id", "int32"), *(field(name, "string") for name in (column, "w", *more)))
    return message(with_schema(payload, *fields), keyed, "srv.inv.s", lsn)
