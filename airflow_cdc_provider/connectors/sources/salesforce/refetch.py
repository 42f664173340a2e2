"""Fetch the current rows of records that the stream does not describe completely, as change records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch_each
from airflow_cdc_provider.connectors.sources.salesforce.header import ChangeType
from airflow_cdc_provider.connectors.sources.salesforce.rest import IDS_PER_RETRIEVE, Rest
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import in_shell


def refetch(
    rest: Rest,
    schema: TableSchema,
    records: Sequence[ChangeRecord],
    describe: Callable[[str], ObjectSchema],
    sees_every_record: Callable[[], bool],
) -> Iterator[ChangeRecord]:
    """A ``read`` of each existing record, including archived ones; a ``delete`` of each in the recycle bin. A record
    that Salesforce does not return was deleted permanently, or is hidden from the user: it is a ``delete`` if the
    stream has a gap for its delete, or the user sees every record of the object. No event need tell of such a delete,
    and no such record comes back. Others are omitted. Raises SourceUnavailable, after all other rows for one with a
    value that the schema cannot have (SRC056)."""
    unreadable: dict[str, str] = {}
    by_id = {str(json.loads(record.key or "[]")[0]): record for record in records}
    ids = list(by_id)
    for start in range(0, len(ids), IDS_PER_RETRIEVE):
        chunk = ids[start : start + IDS_PER_RETRIEVE]
        fetched_at = rest.now() if any(_is_deleted(by_id[record_id]) for record_id in chunk) else None
        result = fetch_each(rest, schema, chunk, describe)
        unreadable |= result.unreadable
        for record_id, row in result.rows.items():
            complete = json.loads(row.after).keys() == set(schema.names)
            yield ChangeRecord(
                schema.table,
                Operation.READ,
                "",
                schema.schema_id,
                key=f'["{record_id}"]',
                after=row.after,
                after_complete=complete,
                commit_ts=row.modstamp,
            )
        for record_id, at in result.deleted.items():
            yield _delete(schema, record_id, at)
        gaps = {record_id for record_id in result.missing if _is_deleted(by_id[record_id])}
        yield from (_delete(schema, record_id, fetched_at) for record_id in sorted(gaps))
        if (unexplained := sorted(result.missing - gaps)) and sees_every_record():
            gone_at = rest.now()
            yield from (_delete(schema, record_id, gone_at) for record_id in unexplained)
    for error in unreadable.values():
        raise SourceUnavailable(_unreadable(schema.table, len(unreadable), error))


def _delete(schema: TableSchema, record_id: str, at: datetime | None) -> ChangeRecord:
    key = f'["{record_id}"]'
    return ChangeRecord(schema.table, Operation.DELETE, "", schema.schema_id, key_before=key, commit_ts=at)


def _is_deleted(record: ChangeRecord) -> bool:
    """Whether the record is a gap that stands for a delete, by Salesforce's change type or by the operation that it
    replaces."""
    after = json.loads(record.after or "{}") if record.op == Operation.GAP else {}
    return bool(after.get("change_type") == ChangeType.GAP_DELETE or after.get("op") == Operation.DELETE)


def _unreadable(table: str, count: int, error: str) -> Problem:
    return Problem(
        "SRC056",
        f"{count:,} fetched records of {table} have a value that does not match its column's type",
        where=table,
        found=error,
        do="nothing, if the field's type was changed: the next change of the object brings the new type, and every run "
        f"fetches the records again; else, or to have them at once: airflow cdc resync, with --table {in_shell(table)}",
        data="the changes of the records wait in the carry-over; all other rows are applied",
    )
