"""Problems that prevent a table from being copied. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.casts import cast_problems
from airflow_cdc_provider.connectors.declared_keys import declared_key_problem
from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CaptureInstance, CatalogTable, Described
from airflow_cdc_provider.connectors.sources.sqlserver.types import CODE_PAGE_TEXTS, SqlColumn, quoted, text_literal
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.source_names import in_shell


def table_problems(
    task: TableTask, table: CatalogTable, described: Described, server: str, replicator: str
) -> Iterator[Problem]:
    """Of a table that is to be copied now."""
    instances = described.instances_of(table)
    if not instances:
        yield not_captured(table, server, replicator)
    else:
        yield from _instance_problems(task, table, instances[-1])
    yield from refused_problems(task, table, described)


def refused_problems(task: TableTask, table: CatalogTable, described: Described) -> Iterator[Problem]:
    """Those that the stream does not show: ``check``, each copy and each run ask for them."""
    selected = table.selected(task.schema)
    if not task.schema.key:
        yield _missing_key(task.table)
    yield from _declared_key(task, table)
    for newest in described.instances_of(table)[-1:]:
        if newest.misses_switches(table):
            yield _switches(table, newest)
    yield from _type_problems(task, selected)
    yield from _collation_problems(task, selected, described)
    yield from cast_problems(task, table.schema, " to text")
    yield from _filter_problems(task, table)


def missing_table(table: str, server: str) -> Problem:
    return Problem(
        "SRC019",
        f"table {table} does not exist",
        where=server,
        found="no such table that the login can see in the schemas of the definition",
        do="create it, grant SELECT on it, or remove it from the definition",
    )


def not_captured(table: CatalogTable, server: str, replicator: str) -> Problem:
    name = table.schema.table
    return Problem(
        "SRC115",
        f"the changes of {name} are not captured",
        where=server,
        found="the table has no capture instance",
        do=f"{enable_statement(table)}; a resync of the table follows, or with `reconcile: manual` run "
        f"airflow cdc resync {replicator} --table {in_shell(name)}",
        data="changes made while the table has no capture instance are in no change table",
    )


def enable_statement(table: CatalogTable, instance: str = "") -> str:
    """By default the server lets partitions be switched. For a table without partitions it ignores the option, and
    warns."""
    more = ", @allow_partition_switch = 0" if table.partitioned else ""
    given = f", @capture_instance = {text_literal(instance)}" if instance else ""
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = {text_literal(table.namespace)}, "
        f"@source_name = {text_literal(table.name)}, @role_name = NULL, @supports_net_changes = 0{given}{more}"
    )


def _missing_key(table: str) -> Problem:
    return Problem(
        "SRC098",
        f"{table} has no key: the target row of a changed row cannot be identified",
        where=table,
        found="no primary key, and no unique index of columns that are NOT NULL and not computed",
        allowed="one of them, or `key` in the table's rule",
        do=f"ALTER TABLE {table} ADD PRIMARY KEY (…); or list columns that are unique under `key`",
    )


def _declared_key(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    columns = ", ".join(map(quoted, task.rule.key))
    index = f"CREATE UNIQUE INDEX {quoted(f'unique_{table.name}')} ON {table.sql} ({columns});"
    do = f"declare these columns NOT NULL with ALTER TABLE … ALTER COLUMN, and then {index}"
    if problem := declared_key_problem(task, table.unique_keys, do):
        yield problem


def _instance_problems(task: TableTask, table: CatalogTable, newest: CaptureInstance) -> Iterator[Problem]:
    missing = [column.name for column in table.selected(task.schema) if not newest.captures(column)]
    if not missing:
        return
    yield Problem(
        "SRC116",
        f"columns of {task.table} are not captured",
        where=task.table,
        found=f"capture instance {newest.name} has no {', '.join(missing)}",
        allowed="a capture instance with all columns of the copy",
        do=f"{enable_statement(table, f'{newest.name}_2')}; after the next run disable the old one with "
        f"sys.sp_cdc_disable_table; or leave the columns out: `columns: {{exclude: [{', '.join(missing)}]}}`",
        data="the copy is as before the first change that lacks these columns",
        columns=tuple(missing),
    )


def _switches(table: CatalogTable, instance: CaptureInstance) -> Problem:
    return Problem(
        "SRC117",
        f"partitions of {table.schema.table} can be switched, and no change table contains the rows that this moves",
        where=table.schema.table,
        found=f"capture instance {instance.name} with partition_switch = 1",
        allowed="partition_switch = 0, which rejects ALTER TABLE … SWITCH",
        do=f"{enable_statement(table, f'{instance.name}_2')}; after the next run disable the old one with "
        "sys.sp_cdc_disable_table",
        data="a copy that has changes of such a time is made again when the instance is replaced",
    )


def _type_problems(task: TableTask, selected: Sequence[SqlColumn]) -> Iterator[Problem]:
    unsupported = [column for column in selected if not column.supported]
    if unsupported:
        yield Problem(
            "SRC118",
            f"{task.table} has columns of a type that cannot be copied",
            where=task.table,
            found=", ".join(f"{column.name} ({column.native})" for column in unsupported),
            allowed="every system type but sql_variant, json, vector, column sets, encrypted columns and CLR types",
            do="leave them out with `columns.exclude`",
            columns=tuple(column.name for column in unsupported),
        )


def _collation_problems(task: TableTask, selected: Sequence[SqlColumn], described: Described) -> Iterator[Problem]:
    """The capture job stores texts of another code page wrongly."""
    database, pages = described.database.collation, described.code_pages
    others = [
        column
        for column in selected
        if column.type in CODE_PAGE_TEXTS and pages.get(column.collation) != pages.get(database)
    ]
    if others:
        yield Problem(
            "SRC119",
            f"{task.table} has texts of another code page than the database, which change tables may not contain as "
            "they are",
            where=task.table,
            found=f"{', '.join(f'{one.name} ({one.collation})' for one in others)}; the database: {database}",
            allowed="nchar, nvarchar, or a collation with the code page of the database",
            do="ALTER TABLE … ALTER COLUMN … nvarchar(…); or leave the columns out with `columns.exclude`",
            columns=tuple(column.name for column in others),
        )


def _filter_problems(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    yield from operand_problems(task)
    large = sorted({one.column for one in task.rule.where if (column := table.find(one.column)) and column.large})
    if not task.rule.snapshot.extent.is_whole:
        yield from _large_columns(task, table)
    if large:
        yield Problem(
            "SRC009",
            f"{task.table} has a row filter, which requires all values of a changed row",
            where=task.table,
            found=f"`where` on {', '.join(large)}, which an update that does not change it may lack",
            allowed="columns that are neither max types nor text, ntext, image, xml or spatial",
            do="correct `where`",
        )


def _large_columns(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    """An update of a row that the copy does not have must contain all its values."""
    large = sorted(name for name in task.schema.names if (column := table.find(name)) and column.large)
    if large:
        yield Problem(
            "SRC009",
            f"{task.table} is not copied as a whole, which requires all values of a changed row",
            where=task.table,
            found=f"{', '.join(large)}, which an update that does not change it may lack",
            allowed="columns that are neither max types nor text, ntext, image, xml or spatial",
            do="exclude them with `columns.exclude`, or copy the whole table: remove `snapshot`",
            columns=tuple(name for name in large if name not in task.schema.key),
        )
