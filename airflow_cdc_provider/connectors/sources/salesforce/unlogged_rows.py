"""Rows of records that the stream told too little of, as change records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch
from airflow_cdc_provider.connectors.sources.salesforce.header import ChangeType
from airflow_cdc_provider.connectors.sources.salesforce.rest import IDS_PER_RETRIEVE, Rest
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.schema import TableSchema


def rows_of(
    rest: Rest, schema: TableSchema, untold: Sequence[ChangeRecord], describe: Callable[[str], ObjectSchema]
) -> Iterator[ChangeRecord]:
    """A ``read`` of each record that is there, archived ones too; a ``delete`` of those in the recycle bin. A record
    that nobody knows was deleted for good or is hidden from the user: it counts as deleted where the stream said so,
    and else is left out, for then the stream will say so. Raises SourceUnavailable."""
    wanted = {str(json.loads(record.key or "[]")[0]): record for record in untold}
    ids = list(wanted)
    for start in range(0, len(ids), IDS_PER_RETRIEVE):
        some = ids[start : start + IDS_PER_RETRIEVE]
        asked_at = rest.now() if any(_says_deleted(wanted[one]) for one in some) else None
        try:
            told = fetch(rest, schema, some, describe)
        except DecodeError as error:
            raise SourceUnavailable(_unreadable(schema.table, str(error))) from error
        for one, found in told.found.items():
            complete = json.loads(found.after).keys() == set(schema.names)
            yield ChangeRecord(
                schema.table,
                Operation.READ,
                "",
                schema.schema_id,
                key=f'["{one}"]',
                after=found.after,
                after_complete=complete,
                commit_ts=found.modstamp,
            )
        for one, at in told.deleted.items():
            yield _gone(schema, one, at)
        for one in told.gone:
            if _says_deleted(wanted[one]):
                yield _gone(schema, one, asked_at)


def _gone(schema: TableSchema, one: str, at: datetime | None) -> ChangeRecord:
    return ChangeRecord(schema.table, Operation.DELETE, "", schema.schema_id, key_before=f'["{one}"]', commit_ts=at)


def _says_deleted(record: ChangeRecord) -> bool:
    told = json.loads(record.after or "{}") if record.op == Operation.GAP else {}
    return bool(told.get("change_type") == ChangeType.GAP_DELETE)


def _unreadable(table: str, what: str) -> Problem:
    return Problem(
        "SRC056",
        f"a record of {table} that was fetched holds a value that is none of its column's type",
        where=table,
        found=what,
        do=f"look whether the field's type was changed; if so: airflow cdc resync, with --table {table}",
        data="the changes of the records wait in the carry-over; all other rows go on",
    )
