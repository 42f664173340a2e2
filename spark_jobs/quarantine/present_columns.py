"""Records that have waited while the columns of their table changed, with the columns that the table has now. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.serde import to_plain
from spark_jobs.folds.earlier_rows import Conversion
from spark_jobs.folds.json_members import image_of, members


@dataclass(frozen=True)
class PresentColumns:
    """``conversions`` and ``initials`` (of columns that were added later, as JSON): by the id of the schema of a
    record. ``schema_id``: of the table now."""

    conversions: Mapping[str, Conversion]
    initials: Mapping[str, Mapping[str, str]]
    schema_id: str

    def record(self, record: ChangeRecord) -> ChangeRecord:
        """A record whose columns are as they were is returned unchanged."""
        conversion = self.conversions.get(record.schema_id)
        if conversion is None:
            return record
        if content := undecoded(record):
            known = json.loads(conversion.image(canonical(content.known)))
            lost = (name for name in content.columns if name not in conversion.former)
            columns = tuple(conversion.names.get(name, name) for name in lost)
            return replace(record, after=canonical(to_plain(replace(content, known=known, columns=columns))))
        after = record.after and conversion.image(record.after)
        if after and record.after_complete:
            after = image_of({**self.initials.get(record.schema_id, {}), **dict(members(after))})
        key, key_before = (text and conversion.key_text(text) for text in (record.key, record.key_before))
        return replace(
            record,
            schema_id=self.schema_id,
            key=key,
            key_before=key_before,
            before=record.before and conversion.image(record.before),
            after=after,
        )
