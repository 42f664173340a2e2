"""The documentation of a replicator's DAG in Airflow: Markdown, with every text of the YAML as a code span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.markdown import code
from airflow_cdc_provider.core.spec.definition import Definition, TableRule, Target, format_duration


def _targets(definition: Definition) -> Iterator[str]:
    for target in definition.all_targets:
        place = code(target.location or target.catalog or _target_text(target))
        yield f"**{target.type}** at {place}" + (f" ({code(target.name)})" if definition.targets else "")


def _target_text(target: Target) -> str:
    """For a target without location and catalog: its connection, and the schema if there is one."""
    return (
        f"{target.connection}, schema {target.options['schema']}" if "schema" in target.options else target.connection
    )


def _schedule_text(definition: Definition) -> str:
    schedule = [f"at {code(definition.schedule)}, in UTC"] if definition.schedule else []
    assets = [f"when {code(name)} is updated" for name in definition.triggered_by]
    return ", and ".join([*schedule, *assets]) or "only when triggered manually"


def dag_doc(definition: Definition, warnings: Iterable[Problem] = ()) -> str:
    source, staging = definition.source, definition.staging
    connection = f"(connection {code(source.connection)})" if source.connection else "(no connection)"
    lines = [
        f"Replicates tables from **{source.type}** {connection} to {' and to '.join(_targets(definition))}.",
        "",
        f"- runs {_schedule_text(definition)}",
        f"- change log: {code(staging.location)}, retained for {format_duration(staging.retain)} after all tables have "
        "applied it",
        f"- a copy is late if its lag is more than {format_duration(definition.freshness)}",
        "",
        "| source | target | columns | rows | deletes |",
        "|---|---|---|---|---|",
        *(_row(rule) for rule in definition.tables),
        *("\n".join(("", f"Warning: {code(str(warning))}")) for warning in warnings),
        "",
        f"State of each table: `airflow cdc status {definition.name}`. "
        f"Comparison with the source: `airflow cdc verify {definition.name}`.",
    ]
    return "\n".join(lines)


def _row(rule: TableRule) -> str:
    columns = "all"
    if rule.columns.include:
        columns = "only " + ", ".join(map(code, rule.columns.include))
    elif rule.columns.exclude:
        columns = "all except " + ", ".join(map(code, rule.columns.exclude))
    if changed := _changed_columns(rule):
        columns += "; " + "; ".join(changed)
    rows = " and ".join(code(f"{c.column} {c.op}") for c in rule.where) or "all"
    target = code(rule.target) if rule.target else "default name"
    target += f" in {', '.join(map(code, rule.targets))}" if rule.targets else ""
    return f"| {code(rule.source)} | {target} | {columns} | {rows} | {rule.on_delete} |"


def _changed_columns(rule: TableRule) -> list[str]:
    names = {field: list(getattr(rule.columns, field)) for field in ("cast", "hash", "mask", "truncate", "rename")}
    names["add"] = [added.name for added in rule.columns.add]
    texts = [f"{field}: {', '.join(map(code, columns))}" for field, columns in names.items() if columns]
    return [*texts, *(["new columns are withheld"] if rule.sensitive else [])]
