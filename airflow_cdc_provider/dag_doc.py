"""What a replicator's DAG says of itself in Airflow: Markdown, with every text of the YAML shown as code."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition, TableRule, Target, format_duration


def _schema_of(target: Target) -> str:
    """Where a target is that is reached by its connection alone."""
    return (
        f"{target.connection}, schema {target.options['schema']}" if "schema" in target.options else target.connection
    )


def _runs(definition: Definition) -> str:
    time = [f"at {code(definition.schedule)}, in UTC"] if definition.schedule else []
    assets = [f"when {code(name)} is updated" for name in definition.triggered_by]
    return ", and ".join([*time, *assets]) or "by hand only"


def dag_doc(definition: Definition, warnings: Iterable[Problem] = ()) -> str:
    source, target, staging = definition.source, definition.target, definition.staging
    through = f"(connection {code(source.connection)})" if source.connection else "(no connection)"
    lines = [
        f"Keeps copies of tables from **{source.type}** {through} in **{target.type}** at "
        f"{code(target.location or target.catalog or _schema_of(target))}.",
        "",
        f"- runs {_runs(definition)}",
        f"- change log: {code(staging.location)}, kept {format_duration(staging.retain)} after all tables applied it",
        f"- late when older than {format_duration(definition.freshness)}",
        "",
        "| source | target | columns | rows | deletes |",
        "|---|---|---|---|---|",
        *(_row(rule) for rule in definition.tables),
        *("\n".join(("", f"Warning: {code(str(warning))}")) for warning in warnings),
        "",
        f"State of each table: `airflow cdc status {definition.name}`. Proof: `airflow cdc verify {definition.name}`.",
    ]
    return "\n".join(lines)


def code(text: str) -> str:
    """Text from outside as a code span: nothing in it is taken for Markdown or HTML, also inside a table."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return "`" + printable.replace("`", "'").replace("|", "\\|") + "`"


def _row(rule: TableRule) -> str:
    columns = "all"
    if rule.columns.include:
        columns = "only " + ", ".join(map(code, rule.columns.include))
    elif rule.columns.exclude:
        columns = "all but " + ", ".join(map(code, rule.columns.exclude))
    rows = " and ".join(code(f"{c.column} {c.op}") for c in rule.where) or "all"
    target = code(rule.target) if rule.target else "by its name"
    return f"| {code(rule.source)} | {target} | {columns} | {rows} | {rule.on_delete} |"
