"""Target systems, one folder each. The registry refers to a target's class, its options, and the function that
names its tables, without importing them."""

TARGETS: dict[str, str] = {
    "bigquery": "airflow_cdc_provider.targets.bigquery.target:BigQueryTarget",
    "delta": "airflow_cdc_provider.targets.delta.target:DeltaTarget",
    "iceberg": "airflow_cdc_provider.targets.iceberg.target:IcebergTarget",
    "mysql": "airflow_cdc_provider.targets.mysql.target:MysqlTarget",
    "postgres": "airflow_cdc_provider.targets.postgres.target:PostgresTarget",
    "redshift": "airflow_cdc_provider.targets.redshift.target:RedshiftTarget",
    "snowflake": "airflow_cdc_provider.targets.snowflake.target:SnowflakeTarget",
    "spanner": "airflow_cdc_provider.targets.spanner.target:SpannerTarget",
}

OPTIONS: dict[str, str] = {
    "bigquery": "airflow_cdc_provider.targets.bigquery.options:BigQueryOptions",
    "delta": "airflow_cdc_provider.targets.delta.options:DeltaOptions",
    "iceberg": "airflow_cdc_provider.targets.iceberg.options:IcebergOptions",
    "mysql": "airflow_cdc_provider.targets.mysql.options:MysqlTargetOptions",
    "postgres": "airflow_cdc_provider.targets.postgres.options:PostgresTargetOptions",
    "redshift": "airflow_cdc_provider.targets.redshift.options:RedshiftOptions",
    "snowflake": "airflow_cdc_provider.targets.snowflake.options:SnowflakeOptions",
    "spanner": "airflow_cdc_provider.targets.spanner.options:SpannerOptions",
}

NAMING: dict[str, str] = {
    "bigquery": "airflow_cdc_provider.targets.naming:default_name",
    "delta": "airflow_cdc_provider.targets.naming:default_name",
    "iceberg": "airflow_cdc_provider.targets.naming:default_name",
    "mysql": "airflow_cdc_provider.targets.naming:default_name",
    "postgres": "airflow_cdc_provider.targets.naming:default_name",
    "redshift": "airflow_cdc_provider.targets.naming:default_name",
    "snowflake": "airflow_cdc_provider.targets.naming:default_name",
    "spanner": "airflow_cdc_provider.targets.naming:default_name",
}
