"""The logical type of a reflected column, and how it is selected. Pure.

Each system has a closed list of SQLAlchemy's type classes. A class counts for itself alone, never for its subclasses:
Oracle's NUMBER is both a number and an integer to SQLAlchemy. A column of another class cannot be copied.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Rule, Select, SourceType, Type
from airflow_cdc_provider.connectors.sources.jdbc_poll.mssql_types import MSSQL
from airflow_cdc_provider.connectors.sources.jdbc_poll.mysql_types import MYSQL, REFLECTED
from airflow_cdc_provider.connectors.sources.jdbc_poll.oracle_types import ORACLE
from airflow_cdc_provider.connectors.sources.jdbc_poll.postgres_types import POSTGRESQL
from airflow_cdc_provider.connectors.sources.jdbc_poll.sqlite_types import SQLITE
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

TYPES: Mapping[str, Mapping[type[Type], Rule]] = {
    "postgresql": POSTGRESQL,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "mssql": MSSQL,
    "oracle": ORACLE,
    "sqlite": SQLITE,
}
"""By SQLAlchemy's dialect names: the systems that can be polled."""

REFLECTED_NAMES: Mapping[str, Mapping[str, type[Type]]] = {"mysql": REFLECTED, "mariadb": REFLECTED}
"""Names in the catalog of classes that SQLAlchemy does not reflect."""

REFUSED = SourceType(LogicalType(Kind.TEXT), Select.REFUSED)


def source_type(kind: Type, system: str) -> SourceType:
    rule = TYPES[system].get(type(sa.types.to_instance(kind)), REFUSED)
    return rule if isinstance(rule, SourceType) else rule(kind)
