"""Connectors by type name. The registries name classes as ``module:Class``, so that none is imported until needed."""

SOURCES: dict[str, str] = {
    "jdbc_poll": "airflow_cdc_provider.connectors.sources.jdbc_poll.source:JdbcPollSource",
    "mysql": "airflow_cdc_provider.connectors.sources.mysql.source:MysqlSource",
    "postgres": "airflow_cdc_provider.connectors.sources.postgres.source:PostgresSource",
    "salesforce": "airflow_cdc_provider.connectors.sources.salesforce.source:SalesforceSource",
    "salesforce_poll": "airflow_cdc_provider.connectors.sources.salesforce_poll.source:SalesforcePollSource",
    "sqlserver": "airflow_cdc_provider.connectors.sources.sqlserver.source:SqlServerSource",
    "kafka": "airflow_cdc_provider.connectors.transports.kafka.source:KafkaSource",
    "files": "airflow_cdc_provider.connectors.transports.files.source:FilesSource",
}

MESSAGE_SOURCES = frozenset({"files", "kafka"})
"""Source types that read messages of any format."""

OPTIONS: dict[str, str] = {
    "jdbc_poll": "airflow_cdc_provider.connectors.sources.jdbc_poll.options:JdbcPollOptions",
    "mysql": "airflow_cdc_provider.connectors.sources.mysql.options:MysqlOptions",
    "postgres": "airflow_cdc_provider.connectors.sources.postgres.options:PostgresOptions",
    "salesforce": "airflow_cdc_provider.connectors.sources.salesforce.options:SalesforceOptions",
    "salesforce_poll": "airflow_cdc_provider.connectors.sources.salesforce_poll.options:SalesforcePollOptions",
    "sqlserver": "airflow_cdc_provider.connectors.sources.sqlserver.options:SqlServerOptions",
    "kafka": "airflow_cdc_provider.connectors.transports.kafka.options:KafkaOptions",
    "files": "airflow_cdc_provider.connectors.transports.files.options:FilesOptions",
}

FORMATS: dict[str, str] = {
    "debezium": "airflow_cdc_provider.connectors.decoders.debezium.decode:DebeziumDecoder",
    "ydb": "airflow_cdc_provider.connectors.decoders.ydb.decode:YdbDecoder",
    "datastream": "airflow_cdc_provider.connectors.decoders.datastream.decode:DatastreamDecoder",
}
"""Message formats: one decoder each, for every transport."""

FORMAT_OPTIONS: dict[str, str] = {
    "debezium": "airflow_cdc_provider.connectors.decoders.debezium.options:DebeziumOptions",
    "ydb": "airflow_cdc_provider.connectors.decoders.ydb.options:YdbOptions",
    "datastream": "airflow_cdc_provider.connectors.decoders.datastream.options:DatastreamOptions",
}

SAVED: dict[str, str] = {
    **dict.fromkeys(FORMATS, "airflow_cdc_provider.connectors.decoders.common.saved_messages:decode_file"),
    "mysql": "airflow_cdc_provider.connectors.sources.mysql.binlog_files:decode_file",
    "postgres": "airflow_cdc_provider.connectors.sources.postgres.saved_messages:decoded",
    "salesforce": "airflow_cdc_provider.connectors.sources.salesforce.saved_events:decoded",
}
"""Functions that decode a file of saved messages, by message format or source type."""
