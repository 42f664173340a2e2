"""The statements that give a role what this target needs."""

from __future__ import annotations

from airflow_cdc_provider.targets.snowflake.options import SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.session import identifier
from airflow_cdc_provider.targets.snowflake.sql import exactly
from airflow_cdc_provider.targets.snowflake.stage import stage_parts

EVERYBODY = "PUBLIC"
"""The role of a session without another one."""


def grant_statements(options: SnowflakeOptions, role: str, warehouse: str) -> str:
    """``role`` and ``warehouse``: of the session; empty if it has none."""
    schema = f"{exactly(options.database)}.{exactly(options.schema)}"
    create_stage = "" if options.stage_name else ", CREATE STAGE"
    privileges = [
        *([f"USAGE, OPERATE ON WAREHOUSE {identifier(warehouse)}"] if warehouse else []),
        f"USAGE ON DATABASE {exactly(options.database)}",
        f"USAGE, CREATE TABLE, CREATE VIEW{create_stage} ON SCHEMA {schema}",
        *(_on_stage(options) if options.stage_name else []),
    ]
    whom = identifier(role or EVERYBODY)
    return " ".join(f"GRANT {privilege} TO ROLE {whom};" for privilege in privileges)


def _on_stage(options: SnowflakeOptions) -> list[str]:
    database, schema, stage = map(exactly, stage_parts(options.database, options.schema, options.stage_name))
    return [
        f"USAGE ON DATABASE {database}",
        f"USAGE ON SCHEMA {database}.{schema}",
        f"USAGE ON STAGE {database}.{schema}.{stage}",
    ]
