"""The name of a Delta table in Spark's catalog, for readers. The folder remains authoritative."""

from __future__ import annotations

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.errors import CheckFailed, ForeignTarget
from airflow_cdc_provider.targets.delta.ddl import catalog_name, register
from airflow_cdc_provider.targets.sparksql.names import quoted


def require_name_free(spark: SparkSession, catalog: str, target_table: str, path: str) -> None:
    """Raises CheckFailed (TGT040) if the catalog has no such schema, ForeignTarget (TGT041) if the name is taken.
    Called before a table is written, so that nothing has to be undone."""
    schema = ".".join(map(quoted, catalog.split(".")))
    if not spark.catalog.databaseExists(schema):
        raise CheckFailed.of(
            "TGT040",
            f"the catalog has no schema {catalog}",
            where="target.catalog",
            found=f"catalog implementation {spark.conf.get('spark.sql.catalogImplementation')}",
            do=f"CREATE SCHEMA {schema}, or set spark.conf of the definition so that Spark finds the metastore",
            data="the table was not written",
        )
    name = catalog_name(catalog, target_table)
    found = _location(spark, name)
    if found is not None and found != _plain(path):
        raise ForeignTarget.of(
            "TGT041",
            f"the name {name} belongs to another table",
            where=f"target.catalog {catalog}",
            found=found or "a view",
            allowed=_plain(path),
            do="drop or rename that table, or give this one another `target` in the definition",
            data="neither table was changed",
        )


def ensure_registered(spark: SparkSession, catalog: str, target_table: str, path: str) -> None:
    """Register the table if it has no name. Raises ForeignTarget (TGT041) if the name is taken."""
    require_name_free(spark, catalog, target_table, path)
    if not spark.catalog.tableExists(catalog_name(catalog, target_table)):
        spark.sql(register(catalog, target_table, path))


def _location(spark: SparkSession, name: str) -> str | None:
    """The location of the named table; empty for a view, None if there is neither."""
    if not spark.catalog.tableExists(name):
        return None
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
    return _plain(rows[0]["data_type"]) if rows else ""


def _plain(location: str) -> str:
    """``file:/a``, ``file:///a`` and ``/a/`` are the same path."""
    scheme, colon, rest = location.partition(":")
    path = "/" + rest.lstrip("/") if colon and scheme == "file" else location
    return path.rstrip("/")
