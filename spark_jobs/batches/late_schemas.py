"""The schemas of late changes. They are earlier ones, and never alter the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.core.decisions.operator_decisions import decided_renames
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.ignored_columns import Ignored, without_ignored
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare, same_columns
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.late_changes import LateChanges, unknown_meaning
from spark_jobs.batches.schema_evolution import WindowSchemas
from spark_jobs.folds.earlier_rows import conversions
from spark_jobs.windows.log_reader import WindowSlice, first_keys_of, window_schemas, windows_between

FOLLOWED = frozenset({ChangeKind.ADD_COLUMN, ChangeKind.DROP_COLUMN, ChangeKind.WIDEN, ChangeKind.RENAME})
"""Values from before such a change have a place after it."""
ALLOWED = "earlier schemas from which columns were added, dropped or renamed, or others than the key got wider types"


@dataclass(frozen=True)
class LateSchemas:
    """``ids``: of schemas that only late changes have. ``renamed``: former → present name of columns without ids, as
    operators have decided since the copy. ``renaming``: the ids of those schemas that have such a column."""

    ids: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    renaming: frozenset[str] = frozenset()


def late_schemas(
    log: ChangeLog,
    task: TableTask,
    control: ControlRecord,
    windows: Sequence[WindowSlice],
    in_time: Iterable[WindowSchemas],
    later: TableSchema,
    ignored: Ignored,
) -> LateSchemas:
    """``in_time``: the schemas in the log of the changes that are not late. ``later``: that of the table after them,
    without the ``ignored`` columns. Raises IntegrityBroken (TGT043) where the values of a late change have no certain
    place in it."""
    known = {schema.schema_id for window in in_time for schema in window.schemas}
    found = {
        schema.schema_id: (window.window, without_ignored(schema, ignored))
        for window in window_schemas(log, windows, later, control.floor)
        for schema in window.schemas
        if schema.schema_id not in known
    }
    late = {schema_id: one for schema_id, one in found.items() if one[1].schema_id != later.schema_id}
    if not late:
        return LateSchemas()
    renamed = _renamed_since_copy(log, task, control)
    for window, schema in late.values():
        if unclear := list(unclear_changes(schema, later, renamed)):
            found_changes = f"a change of an earlier schema; since then: {'; '.join(unclear)}"
            raise unknown_meaning(task, control, window, found_changes, ALLOWED)
    renaming = (schema_id for schema_id, (_, schema) in late.items() if _renamed_by_decision(schema, later, renamed))
    return LateSchemas(frozenset(late), renamed, frozenset(renaming))


def require_columns_since(
    log: ChangeLog,
    task: TableTask,
    control: ControlRecord,
    windows: Sequence[WindowSlice],
    late: LateChanges,
    later: TableSchema,
) -> None:
    """Raises IntegrityBroken (TGT043) where a column without an id was dropped and added again after a late change: the
    change has a value of the former one. ``windows``: of the batch. ``later``: the schema of the table after it."""
    if not late.in_any(windows):
        return
    renamed = _renamed_since_copy(log, task, control)
    for window in windows:
        for schema_id, order_key in first_keys_of(log, window, control.floor).items():
            if order_key > late.schemas_after:
                continue
            start = max(control.applied.before(order_key), log.oldest() - 1)
            since = windows_between(log, task.source_table, start, windows[-1].window)
            columns = [column for column in log.schema(schema_id).columns if not column.id]
            if returned := sorted(_returned(log, since, order_key, columns, later, renamed)):
                found = f"a change of an earlier schema; since then {', '.join(returned)} was dropped and added again"
                raise unknown_meaning(task, control, window.window, found, ALLOWED)


def _renamed_since_copy(log: ChangeLog, task: TableTask, control: ControlRecord) -> dict[str, str]:
    return decided_renames(log.decisions(), task.table, control.applied.since or 0)


def _returned(
    log: ChangeLog,
    windows: Iterable[WindowSlice],
    order_key: str,
    columns: Sequence[Column],
    later: TableSchema,
    renamed: Mapping[str, str],
) -> set[str]:
    """Those of ``columns`` that changes above ``order_key`` lack, and ``later`` has."""
    both, found = same_columns(columns, later.columns, renamed or None), set[str]()
    for window in windows:
        lacking = {one: both.keys() - _present(log.schema(one), later, renamed) for one in window.part.schema_ids}
        if any(lacking.values()):
            above = first_keys_of(log, window, order_key)
            found |= {name for one, names in lacking.items() if one in above for name in names}
    return found


def _present(schema: TableSchema, later: TableSchema, renamed: Mapping[str, str]) -> set[str]:
    """The names that its columns have or had, as far as ``later`` has them."""
    now = same_columns(schema.columns, later.columns, renamed or None)
    return {*schema.names, *(former for former, present in renamed.items() if present in now.values())}


def unclear_changes(earlier: TableSchema, later: TableSchema, renamed: Mapping[str, str]) -> Iterator[str]:
    """Where a column has the name that another one got by a rename, or had before one, either may be meant. Where a
    value of the key has another text now, earlier and later changes of one row have not been compared."""
    yield from (str(change) for change in compare(earlier, later, renamed) if change.kind not in FOLLOWED)
    names = {column.name for column in earlier.columns if not column.id}
    for former, present in renamed.items():
        again = former in later.names and present not in later.names
        if former != present and former in names and (present in names or again):
            yield f"{former} was renamed to {present}, and it {'is there again' if again else 'had both'}"
    if any(one.changes_keys for one in conversions({"": earlier}, later, lambda _: renamed).values()):
        yield "the key got a wider type"


def _renamed_by_decision(earlier: TableSchema, later: TableSchema, renamed: Mapping[str, str]) -> bool:
    changes = compare(earlier, later, renamed)
    return any(one.kind is ChangeKind.RENAME and one.before and not one.before.id for one in changes)
