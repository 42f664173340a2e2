"""Whatever the settings of the application are, a text in a statement is read as the text that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.statement_settings import STATEMENT_SETTINGS
from airflow_cdc_provider.core.table.equal_names import without_case
from airflow_cdc_provider.loader.spark_conf import expected_format, refusal_reason
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from spark_jobs.runtime.sessions import new_session
from tests.hostile_texts import TEXTS, ZERO, names

pytestmark = pytest.mark.jvm

OPPOSITE = {"true": "false", "false": "true", "UTC": "Asia/Tokyo", "TIMESTAMP_LTZ": "TIMESTAMP_NTZ"}
WORDS = {"CORRECTED": "LEGACY", "ANSI": "LEGACY"}


class Application:
    """One with settings that change what a statement means."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self.sparkContext = spark, spark.sparkContext

    def newSession(self) -> SparkSession:
        session = self._spark.newSession()
        for key, value in STATEMENT_SETTINGS.items():
            session.conf.set(key, (OPPOSITE | WORDS)[value])
        return session


@pytest.fixture(params=["of the application", "of a table"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    return spark if request.param == "of the application" else new_session(Application(spark))  # type: ignore[arg-type]


def test_texts_and_names_are_read_as_they_are(session: SparkSession) -> None:
    texts = [*TEXTS, *ZERO]
    literals = [text_literal(text) for text in texts]
    read = session.sql(f"SELECT {', '.join(f'{one} AS c{n}' for n, one in enumerate(literals))}")
    assert list(read.first() or ()) == texts
    assert list(session.range(1).select(*map(F.expr, literals)).first() or ()) == texts
    different = list({without_case(name): name for name in names()}.values())
    columns = [f"{n} AS {quoted(name)}" for n, name in enumerate(different)]
    for frame in (session.sql(f"SELECT {', '.join(columns)}"), session.range(1).selectExpr(*columns)):
        assert frame.columns == different
        frame.createOrReplaceTempView("named")
        again = session.sql(f"SELECT {', '.join(f'named.{quoted(name)}' for name in different)} FROM named")
        assert (again.columns, list(again.first() or ())) == (different, list(range(len(different))))


def test_each_setting_is_ours(session: SparkSession) -> None:
    assert {key: session.conf.get(key) for key in STATEMENT_SETTINGS} == STATEMENT_SETTINGS


def test_a_definition_may_set_none_of_them_and_none_like_them(spark: SparkSession) -> None:
    """Of all settings that this version of Spark has."""
    found = list(every_setting(spark._jvm))
    assert len(found) > 500
    like = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.", "spark.sql.variable.")
    listed = {*STATEMENT_SETTINGS, *(key for key in found if key.startswith(like))}
    assert listed <= set(found)
    assert [key for key in listed if not refusal_reason(key)] == []
    omitted = ("spark.sql.streaming.", "spark.sql.hive.", "spark.databricks.")
    others = [key for key in found if not key.startswith(omitted)]
    allowed = [key.lower() for key in others if not refusal_reason(key) and not expected_format(key, "true")]
    for doubtful in ("substitut", "escape", "identifier", "casesensitive", "literal"):
        assert [key for key in allowed if doubtful in key] == []


def every_setting(jvm: Any) -> Iterator[str]:
    registry = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    entries = registry.getConfigEntries().iterator()
    while entries.hasNext():
        yield str(entries.next().key())
