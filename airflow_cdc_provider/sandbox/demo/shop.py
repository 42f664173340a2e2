"""The replicator ``shop``: a PostgreSQL database under load into Delta Lake."""

from __future__ import annotations

from airflow_cdc_provider.sandbox import shop
from airflow_cdc_provider.sandbox.demo.run import DemoRun
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
    schema_changes: {{narrow: ask}}
staging: {{location: {home}/lake/_cdc, retain: 1h}}
spark: {{connection: spark_default, conf: {{spark.driver.memory: 2g}}}}
freshness: 10m
dag: {{owner: demo, tags: [demo], retries: 2, retry_delay: 10s}}
"""

TRANSACTIONS = 150
"""Transactions before the second run; each changes up to 160 rows."""

LOAD_PAUSE_S = 0.2
"""A load generator without pauses would use one of two cores that Airflow and Spark need."""


def connection(database: EmbeddedPostgres) -> dict[str, object]:
    return {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": database.port,
        "login": database.user,
        "password": database.password,
        "schema": "postgres",
    }


def answer_question(run: DemoRun, change: str, answer: str) -> None:
    """A run asks an operator; the demo answers through Airflow's REST API, and waits for the run that follows."""
    run.log(f"{NAME}: fourth run, after {change}: its table waits for an answer, the others go on")
    question = run.wait_for_question(NAME)
    run.log(f"{NAME}: {question.subject}. Answer: {answer}")
    run.answer(question, answer)
    run.finish(NAME, question.run_id)


def replicate(run: DemoRun, database: EmbeddedPostgres) -> bool:
    """Runs, the third one under load, and a question about a schema change. Returns whether the copies are identical to
    the tables at one position."""
    tables = f"{shop.DEMO.rows:,} rows in {len(shop.TABLES)} tables, one without a key"
    run.follow(NAME, f"first run, copies {tables}")
    load = shop.Load(database.dsn(), pause_s=LOAD_PAUSE_S)
    run.progress.show(NAME, "changing rows at the source")
    load.run(TRANSACTIONS)
    load.truncate()
    run.follow(NAME, "second run, after updates, deletes, key swaps and a truncate")
    load.add_column("channel")
    with load:
        run.follow(NAME, "third run, after an added column, while rows change")
        load.narrow_column()
        answer_question(run, "page_views.milliseconds became a smallint", "resync")
        changes = "  ".join(f"{kind} {count:,}" for kind, count in sorted(load.done.items()))
        run.log(f"shop: rows changed at the source so far: {changes}")
        run.log("shop: verify, source and target at one position, while rows change")
        return run.verify(NAME)
