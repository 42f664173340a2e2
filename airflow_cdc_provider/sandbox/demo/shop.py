"""The shop: a live PostgreSQL database into Delta Lake."""

from __future__ import annotations

from airflow_cdc_provider.sandbox import shop
from airflow_cdc_provider.sandbox.demo.stage import Stage
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres

NAME = "shop"
REPLICATOR = """\
name: shop
source: {{type: postgres, connection: shop_db, publication: cdc_shop}}
target: {{type: delta, location: {home}/lake/shop}}
tables:
  - source: public.customers
  - source: public.orders
    on_delete: soft
  - source: public.order_lines
    columns: {{exclude: [internal_note]}}
    cluster_by: [order_id]
  - source: public.page_views
staging: {{location: {home}/lake/_cdc, retain: 1h}}
spark: {{connection: spark_default, conf: {{spark.driver.memory: 2g}}}}
freshness: 10m
dag: {{owner: demo, tags: [demo], retries: 2, retry_delay: 10s}}
"""

STEPS_PER_ROUND = 150
"""Transactions the load generator makes before each further run; each changes up to 160 rows."""

WRITER_RESTS_S = 0.2
"""A writer without rests would take one of two cores from Airflow and Spark."""


def connection(database: EmbeddedPostgres) -> dict[str, object]:
    return {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": database.port,
        "login": database.user,
        "password": database.password,
        "schema": "postgres",
    }


def play(stage: Stage, database: EmbeddedPostgres) -> bool:
    """Whether both sides are identical in the end, while a writer goes on."""
    tables = f"{shop.DEMO.rows:,} rows in {len(shop.TABLES)} tables, one without a key"
    stage.follow(NAME, f"first run, copies {tables}")
    load = shop.Load(database.dsn(), rest_s=WRITER_RESTS_S)
    stage.progress.tell(NAME, "changing rows at the source")
    load.run(STEPS_PER_ROUND)
    load.truncate()
    stage.follow(NAME, "second run, updates, deletes, key swaps and a truncate")
    load.grow("channel")
    with load:
        stage.follow(NAME, "third run, an added column, while a writer goes on")
        changes = "  ".join(f"{kind} {count:,}" for kind, count in sorted(load.done.items()))
        stage.say(f"shop: rows changed at the source so far: {changes}")
        stage.say("shop: verify, both sides at one position, while the writer goes on")
        return stage.verify(NAME)
