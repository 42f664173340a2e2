"""What exists at the server for one replicator: its slot, and the tables that it has added to the publication."""

from __future__ import annotations

from airflow_cdc_provider.connectors.source_features import SourceObject
from airflow_cdc_provider.connectors.sources.postgres.added_tables import added_tables, remove_added, rename_added
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.create_slots import PLUGIN
from airflow_cdc_provider.connectors.sources.postgres.options import PostgresOptions

SLOT = """
SELECT slot_name::text FROM pg_replication_slots
WHERE slot_name = %s AND slot_type = 'logical' AND plugin = %s AND database = current_database()
"""


def find_objects(client: PostgresClient, options: PostgresOptions) -> list[SourceObject]:
    with client.session("describe") as connection:
        slot = connection.execute(SLOT, (options.slot, PLUGIN)).fetchall()
        added = added_tables(connection, options.publication, client.replicator)
    return [
        *(SourceObject("replication slot", name) for (name,) in slot),
        *(SourceObject(f"table in publication {options.publication}", table) for table in added),
    ]


def remove_tables(client: PostgresClient, options: PostgresOptions) -> None:
    with client.session("drop") as connection:
        remove_added(connection, options.publication, client.replicator)


def take_objects(client: PostgresClient, options: PostgresOptions, former: str, former_slot: str) -> None:
    """A slot has no other name: it is copied, with its position."""
    with client.session("open") as connection:
        has = {name for slot in (options.slot, former_slot) for (name,) in connection.execute(SLOT, (slot, PLUGIN))}
        if has == {former_slot} and options.slot != former_slot:
            connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", (former_slot, options.slot))
        rename_added(connection, options.publication, former, client.replicator)
