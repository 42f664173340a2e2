"""Source systems, one folder each. The registry names a connector's class and its options without importing them."""

SOURCES: dict[str, str] = {
    "jdbc_poll": "airflow_cdc_provider.connectors.jdbc_poll.source:JdbcPollSource",
    "mysql": "airflow_cdc_provider.connectors.mysql.source:MysqlSource",
    "postgres": "airflow_cdc_provider.connectors.postgres.source:PostgresSource",
    "salesforce": "airflow_cdc_provider.connectors.salesforce.source:SalesforceSource",
    "salesforce_poll": "airflow_cdc_provider.connectors.salesforce_poll.source:SalesforcePollSource",
    "kafka": "airflow_cdc_provider.connectors.kafka.source:KafkaSource",
    "files": "airflow_cdc_provider.connectors.files.source:FilesSource",
}

OPTIONS: dict[str, str] = {
    "jdbc_poll": "airflow_cdc_provider.connectors.jdbc_poll.options:JdbcPollOptions",
    "mysql": "airflow_cdc_provider.connectors.mysql.options:MysqlOptions",
    "postgres": "airflow_cdc_provider.connectors.postgres.options:PostgresOptions",
    "salesforce": "airflow_cdc_provider.connectors.salesforce.options:SalesforceOptions",
    "salesforce_poll": "airflow_cdc_provider.connectors.salesforce_poll.options:SalesforcePollOptions",
    "kafka": "airflow_cdc_provider.connectors.kafka.options:KafkaOptions",
    "files": "airflow_cdc_provider.connectors.files.options:FilesOptions",
}

FORMATS: dict[str, str] = {
    "debezium": "airflow_cdc_provider.connectors.debezium.decode:DebeziumDecoder",
    "ydb": "airflow_cdc_provider.connectors.ydb.decode:YdbDecoder",
    "datastream": "airflow_cdc_provider.connectors.datastream.decode:DatastreamDecoder",
}
"""Event formats: a decoder of messages each, whatever brings them."""

FORMAT_OPTIONS: dict[str, str] = {
    "debezium": "airflow_cdc_provider.connectors.debezium.options:DebeziumOptions",
    "ydb": "airflow_cdc_provider.connectors.ydb.options:YdbOptions",
    "datastream": "airflow_cdc_provider.connectors.datastream.options:DatastreamOptions",
}

SAVED: dict[str, str] = {
    **dict.fromkeys(FORMATS, "airflow_cdc_provider.connectors.formats.saved:decoded"),
    "mysql": "airflow_cdc_provider.connectors.mysql.saved:decoded",
    "postgres": "airflow_cdc_provider.connectors.postgres.saved:decoded",
    "salesforce": "airflow_cdc_provider.connectors.salesforce.saved:decoded",
}
"""Who reads a file of saved messages."""
