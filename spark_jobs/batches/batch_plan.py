"""Which windows a batch contains, and the schema at their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from airflow_cdc_provider.core.decisions.holes import hole_for, last_hole
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to, decided_renames, newly_ignored
from airflow_cdc_provider.core.decisions.schema_decisions import SchemaStop, question_about
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import SchemaPolicy
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import history_of, row_schema
from airflow_cdc_provider.core.table.ignored_columns import Ignored, without_ignored
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.late_changes import LateChanges
from spark_jobs.batches.late_schemas import LateSchemas, late_schemas, require_columns_since
from spark_jobs.batches.schema_evolution import walk_schemas
from spark_jobs.batches.truncates import Truncates, find_truncates
from spark_jobs.batches.wanted_columns import WantedColumns
from spark_jobs.windows.log_reader import WindowSlice, schemas_by_order, window_schemas, windows_between


@dataclass(frozen=True)
class BatchPlan:
    """``windows`` have records, or had late ones only. After the batch the cursor of the table is ``window`` and its
    schema is ``schema``. ``touched``: only keys in these windows are staged (a repair); all keys where empty. ``stop``:
    the schema change before which the batch ends; ``truncate``: the window with the TRUNCATE before which it ends.
    ``ignored_truncates``: windows whose TRUNCATEs are not applied. ``renamed``: columns that operators have decided to
    be renamed. ``late``: the schemas of late changes. ``ignored``: the columns that operators have decided not to copy,
    and that the table still has."""

    windows: tuple[WindowSlice, ...]
    window: int
    schema: TableSchema
    added: tuple[Column, ...] = ()
    touched: tuple[WindowSlice, ...] = ()
    stop: SchemaStop | None = None
    truncate: int | None = None
    ignored_truncates: frozenset[int] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    late: LateSchemas = field(default_factory=LateSchemas)
    ignored: Ignored = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(window.part.rows for window in self.windows)

    def renamed_from(self, schema_id: str) -> Mapping[str, str]:
        """The columns that operators have decided to be renamed since records had this schema."""
        return self.late.renamed if schema_id in self.late.ids else self.renamed


def plan_catch_up(
    log: ChangeLog,
    task: TableTask,
    control: ControlRecord,
    upto: int,
    policy: SchemaPolicy | None = None,
    late: LateChanges | None = None,
) -> BatchPlan:
    """All windows after the cursor, up to the first hole, to the first schema change that needs more than an added
    column, and to the first TRUNCATE that may not be applied. ``policy``: for schema changes, the default one if it is
    None. ``late``: of a source that delivers changes late. Raises IntegrityBroken (TGT043)."""
    policy = policy or SchemaPolicy()
    windows = windows_between(log, task.source_table, control.window, last_window_before_hole(log, control, upto))
    recorded = frozenset(window.window for window in windows if window.part.rows)
    windows = late.removed_from(windows) if late else windows
    truncates = Truncates() if task.rule.ignores_truncates else find_truncates(log, control, windows, policy)
    if truncates.waiting:
        windows = [window for window in windows if window.window < truncates.waiting]
    if late:
        late.refuse_truncates([window for window in windows if window.window not in truncates.ignored])
    current = without_ignored(row_schema(control.schema or task.schema), control.ignored)
    wanted = WantedColumns(control.ignored, newly_ignored(log.decisions(), task.table, control.window))
    after = late.schemas_after if late else control.floor
    logged = window_schemas(log, windows, current, after)
    schemas = [wanted.of(window) for window in logged]
    several = any(len(window.schemas) > 1 for window in schemas)
    renamed = decided_renames(log.decisions(), task.table, control.window) if several else {}
    approved = partial(_is_approved, log, control)
    walked = walk_schemas(current, control.window, schemas, policy, approved, renamed or None)
    reached = walked.window == (windows[-1].window if windows else control.window)
    windows = [window for window in windows if window.window <= walked.window]
    ignored = wanted.ignored_after(walked.window)
    if late:
        require_columns_since(log, task, control, windows, late, walked.schema)
    return BatchPlan(
        tuple(window for window in windows if window.window in recorded),
        walked.window,
        walked.schema,
        walked.added,
        stop=walked.stop,
        truncate=truncates.waiting if reached else None,
        ignored_truncates=truncates.ignored,
        renamed=renamed,
        late=late_schemas(log, task, control, windows, logged, walked.schema, ignored) if late else LateSchemas(),
        ignored=ignored,
    )


def _is_approved(log: ChangeLog, control: ControlRecord, stop: SchemaStop) -> bool:
    decision = answer_to(log.decisions(), question_about(control, stop))
    return decision is not None and decision.answer is Answer.APPLY


def last_window_before_hole(log: ChangeLog, control: ControlRecord, upto: int) -> int:
    """The last window before one with a hole of the table; ``upto`` where there is none."""
    for number in range(control.window + 1, upto + 1):
        if hole_for(log.manifest(number), control) is not None:
            return number - 1
    return upto


def plan_repair(
    log: ChangeLog, control: ControlRecord, first: int, last: int, late: LateChanges | None = None
) -> BatchPlan:
    """The windows ``first`` to ``last``, and all later ones up to the cursor, which may have changed the same keys.
    Windows before a hole are left out: the copy after the hole replaced their rows. Raises CommandRefused where the log
    or the table cannot serve the repair."""
    if not control.schema or not control.schema.key:
        raise _repair_refused(control, "the table has no key: equal rows cannot be distinguished", "no key")
    if history_of(control.schema) is not History.NONE:
        raise _repair_refused(control, "the copy has every change already", "a history")
    if first < log.oldest():
        raise _repair_refused(
            control, "the change log does not reach back to this interval", f"oldest window {log.oldest()}"
        )
    hole = last_hole(map(log.manifest, range(first, control.window + 1)), control)
    windows = windows_between(log, control.source_table, hole or first - 1, control.window)
    windows = late.removed_from(windows, repair=True) if late else windows
    logged = _logged_schemas(log, control.schema, control.floor, windows, late)
    in_order = [*(without_ignored(schema, control.ignored) for schema in logged), control.schema]
    gone = {
        change.before.name
        for earlier, later in pairwise(in_order)
        for change in compare(earlier, later)
        if change.kind in (ChangeKind.DROP_COLUMN, ChangeKind.RENAME) and change.before
    }
    if gone:
        raise _repair_refused(control, "columns were dropped or renamed since then", ", ".join(sorted(gone)))
    with_records = tuple(window for window in windows if window.part.rows)
    touched = tuple(window for window in with_records if window.window <= last)
    return BatchPlan(
        with_records if touched else (),
        control.window,
        control.schema,
        touched=touched,
        ignored=control.ignored,
        ignored_truncates=find_truncates(log, control, windows, SchemaPolicy()).ignored,
    )


def _logged_schemas(
    log: ChangeLog, current: TableSchema, floor: str, windows: Sequence[WindowSlice], late: LateChanges | None
) -> list[TableSchema]:
    """In the order of their changes, as far as it is known: a feed may have earlier ones in later windows."""
    if late and late.recognises:
        return schemas_by_order(log, windows, current, floor)
    return [schema for window in window_schemas(log, windows, current, floor) for schema in window.schemas]


def _repair_refused(control: ControlRecord, what: str, found: str) -> CommandRefused:
    return CommandRefused.of(
        "CMD010",
        f"{control.table} cannot be repaired over this interval",
        where=control.table,
        found=f"{what}: {found}",
        do=f"airflow cdc resync {control.replicator} --table {in_shell(control.table)}",
        data="nothing was changed",
    )
