"""Rules that somebody gave to a table of a lake, in the errors of the writes that break them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import RESUME
from airflow_cdc_provider.targets.database.errors import refused

REFUSALS: Mapping[str, tuple[str, str]] = {
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": (r"CHECK constraint .*?(?= violated by)", "ALTER TABLE … DROP CONSTRAINT"),
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": (r"NOT NULL constraint.*", "ALTER TABLE … ALTER COLUMN … DROP NOT NULL"),
    "DELTA_NOT_NULL_COLUMN_MISSING_VALUE": (r"Column .*", "ALTER TABLE … ALTER COLUMN … DROP NOT NULL"),
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": (
        r"This table is configured.*?(?=\.)",
        "ALTER TABLE … UNSET TBLPROPERTIES ('delta.appendOnly')",
    ),
}
"""Error class → the part of its text without values, and what undoes the rule."""


def require_accepted(error: Exception, where: str) -> None:
    """Raises Blocked (TGT091) if the error is that of such a rule. py4j and PySpark wrap a failed task in unrelated
    classes, so the text decides."""
    text = str(error)
    for name, (part, do) in REFUSALS.items():
        if f"[{name}]" in text:
            match = re.search(part, text)
            found = f"{name}: {match[0]}" if match else name
            raise refused(where, found, f"{do}, if all changes of the source are to be copied; {RESUME}") from None
