"""Invalid definitions: each mistake is reported with its code and its location, without secrets. The ids are those of
the catalog of invalid input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.loader import load_file, load_text
from tests.provider.shop_yaml import FOLDERS, GOOD, ONE_BUCKET, SOURCE, load, problems, rule, swap

SHORT_RETENTION = swap(SOURCE, "{type: salesforce, connection: crm}").replace("retain: 7d", "retain: 71h")

CRM = "{type: salesforce_poll, connection: crm, objects: [Account]"
ERP = "{type: jdbc_poll, connection: erp, driver: mysql+pymysql, timestamp_column: changed_at"


def feed(keys: str) -> str:
    return swap(SOURCE, f"{{type: kafka, connection: k, {keys}}}")


BAD = [
    ("D-01 an empty file", "", "DEF001", "1:1"),
    ("D-01 a file of comments", "# nothing\n", "DEF001", "1:1"),
    ("D-01 a file of one null", "~\n", "DEF001", "1:1"),
    ("D-02 a tab indents", "name: shop\ntables:\n\t- source: a\n", "DEF002", "3:1"),
    ("D-02 a list is not closed", "name: [shop\n", "DEF002", "2:1"),
    ("D-02 a control character", "name: sh\aop\n", "DEF002", "1:9"),
    ("D-03 a second document", GOOD + "---\nname: b\n", "DEF003", "8:1"),
    ("D-04 a key twice", GOOD + "name: shop2\n", "DEF004", "8:1"),
    ("D-05 a Python tag", swap("name: shop", "name: !!python/object/apply:os.system [id]"), "DEF005", "1:7"),
    ("D-05 a tag of one's own", swap("name: shop", "name: !secret shop"), "DEF005", "1:7"),
    ("D-06 an anchor", swap("name: shop", "name: &n shop"), "DEF006", "1:7"),
    ("D-06 an alias", swap("name: shop", "name: *n"), "DEF006", "1:7"),
    ("D-07 too many bytes", GOOD + "#" * 262144, "DEF007", "1:1"),
    ("D-07 too deep", "a: " + "[" * 30, "DEF007", "1:23"),
    ("D-08 UTF-16", GOOD.encode("utf-16"), "DEF008", "1:1"),
    ("D-08 Latin-1", "# caf\xe9\n".encode("latin-1") + GOOD.encode(), "DEF008", "1:6"),
    ("D-08 a NUL", GOOD.encode().replace(b"cdc_shop", b"cdc\0shop"), "DEF008", "3:63"),
    ("D-09 an unknown key", swap("tables:", "tabels:"), "DEF010", "5:1"),
    ("D-09 an unknown key of a table", rule("on_delte: soft"), "DEF010", "7:5"),
    ("D-09 an unknown key of a source", swap("publication:", "publicaton:"), "DEF010", "3:47"),
    ("D-09 a misspelled type", swap("type: postgres", "typ: postgres"), "DEF010", "3:10"),
    ("D-10 a source without type", swap("type: postgres, ", ""), "DEF011", "3:9"),
    ("D-10 a key is missing", swap("target: {type: delta, location: /data/lake/shop}\n", ""), "DEF011", "1:1"),
    ("D-10 a key of the source type is missing", swap(", publication: cdc_shop", ""), "DEF011", "3:9"),
    ("D-10 a source without connection", swap("connection: shop_db, ", ""), "DEF011", "3:9"),
    ("D-10 a source of messages without format", feed("topics: [a]"), "DEF011", "3:9"),
    ("D-10 topics are missing", feed("format: ydb"), "DEF011", "3:9"),
    ("D-20 no topic", feed("format: ydb, topics: []"), "DEF020", "3:59"),
    ("D-12 a format that is none", feed("topics: [a], format: debezum"), "DEF048", "3:59"),
    ("D-09 a key of another format", feed("topics: [a], format: ydb, unwrapped: true"), "DEF010", "3:64"),
    ("D-12 a mode that is none", feed("topics: [a], format: ydb, mode: ALL"), "DEF046", "3:70"),
    (
        "D-10 the target has no location",
        swap(FOLDERS, "{type: delta}"),
        "DEF011",
        "4:9",
    ),
    ("D-10 a database without connection", swap(FOLDERS, "{type: postgres, schema: shop}"), "DEF011", "4:9"),
    ("D-10 a database without schema", swap(FOLDERS, "{type: mysql, connection: warehouse}"), "DEF011", "4:9"),
    (
        "D-09 a folder for a database",
        swap(FOLDERS, "{type: postgres, connection: warehouse, schema: shop, location: /data}"),
        "DEF010",
        "4:73",
    ),
    (
        "D-09 floats of another database",
        swap(FOLDERS, "{type: postgres, connection: warehouse, schema: shop, floats: text}"),
        "DEF010",
        "4:63",
    ),
    (
        "D-12 a kind of floats that is none",
        swap(FOLDERS, "{type: mysql, connection: warehouse, schema: shop, floats: exact}"),
        "DEF046",
        "4:68",
    ),
    ("D-11 a later version", GOOD + "version: 3\n", "DEF012", "8:10"),
    ("D-12 a name with spaces", swap("name: shop", "name: Sales Force!"), "DEF013", "1:7"),
    ("D-12 a name in capitals", swap("name: shop", "name: DAGs"), "DEF013", "1:7"),
    ("D-12 a reserved name", swap("name: shop", "name: dags"), "DEF013", "1:7"),
    ("D-12 a device name", swap("name: shop", "name: con"), "DEF013", "1:7"),
    ("D-12 a name that climbs", swap("name: shop", "name: ../x"), "DEF013", "1:7"),
    ("D-12 a name that ends with a dot", swap("name: shop", "name: shop."), "DEF013", "1:7"),
    ("D-12 a long name", swap("name: shop", "name: " + "x" * 80), "DEF013", "1:7"),
    ("D-12 a name with a line break", swap("name: shop", 'name: "shop\\n"'), "DEF013", "1:7"),
    ("D-12 a target name that climbs", rule("target: ../x"), "DEF013", "7:13"),
    ("D-12 a connection that is a URL", swap("shop_db", "'postgres://h/d'"), "DEF013", "3:38"),
    ("D-15 a schedule that is a number", swap('"*/5 * * * *"', "5"), "DEF016", "2:11"),
    ("D-15 a bad cron expression", swap('"*/5 * * * *"', "61 * * * *"), "DEF016", "2:11"),
    ("D-15 a preset that is no interval", swap('"*/5 * * * *"', "'@reboot'"), "DEF016", "2:11"),
    ("D-15 every five seconds", swap('"*/5 * * * *"', '"* * * * * */5"'), "DEF016", "2:11"),
    ("D-15 a random schedule", swap('"*/5 * * * *"', '"R R * * *"'), "DEF016", "2:11"),
    ("D-15 a date that never comes", swap('"*/5 * * * *"', '"0 0 30 2 *"'), "DEF016", "2:11"),
    ("D-16 a duration without unit", swap("7d", "7"), "DEF017", "7:46"),
    ("D-16 a negative duration", swap("7d", "-1h"), "DEF017", "7:46"),
    ("D-16 a duration of nothing", swap("7d", "0s"), "DEF017", "7:46"),
    ("D-16 an ISO duration", swap("7d", "P1M"), "DEF017", "7:46"),
    ("D-16 a duration of centuries", swap("7d", "99999d"), "DEF017", "7:46"),
    ("D-16 a sexagesimal duration", swap("7d", "10:00"), "DEF017", "7:46"),
    ("D-17 no for a text", rule("key: [no]"), "DEF018", "7:11"),
    ("D-17 on for a text", rule("cluster_by: [on]"), "DEF018", "7:18"),
    ("D-17 a list where a mapping belongs", swap("{location: /data/lake/_cdc, retain: 7d}", "[x]"), "DEF018", "7:10"),
    ("D-17 a text where a list belongs", rule("key: id"), "DEF018", "7:10"),
    ("D-17 nothing where text belongs", swap("cdc_shop", "~"), "DEF018", "3:60"),
    ("D-17 the file is a list", "- a\n", "DEF018", "1:1"),
    ("D-18 an octal number for a text", swap("cdc_shop", "0015"), "DEF018", "3:60"),
    ("D-18 a sexagesimal number for a text", swap("cdc_shop", "22:22"), "DEF018", "3:60"),
    ("D-18 an octal number for a number", GOOD + "dag: {retries: 010}\n", "DEF018", "8:16"),
    ("D-19 a date for a text", swap("cdc_shop", "2024-01-01"), "DEF018", "3:60"),
    ("D-19 a date in a filter", rule("where: [{column: d, op: '>', value: 2024-01-01}]"), "DEF018", "7:41"),
    ("D-20 an empty key", rule("key: []"), "DEF020", "7:10"),
    ("D-20 no tables", swap("\n  - source: public.orders", " []"), "DEF020", "5:9"),
    ("D-20 an empty include", rule("columns: {include: []}"), "DEF020", "7:24"),
    ("D-21 an excluded key column", rule("key: [id]\ncolumns: {exclude: [id]}"), "DEF021", "7:11"),
    ("D-21 a key column not included", rule("columns: {include: [a]}\nkey: [a, id]"), "DEF021", "8:14"),
    (
        "D-21 a filter on an excluded column",
        rule("columns: {exclude: [s]}\nwhere: [{column: s, op: is null}]"),
        "DEF021",
        "8:22",
    ),
    ("a cast to no type", rule("columns: {cast: {at: number}}"), "DEF055", "7:26"),
    ("a cast of an excluded column", rule("columns: {exclude: [at], cast: {at: text}}"), "DEF021", "7:37"),
    (
        "texts of a source that has none",
        rule("columns: {cast: {at: text}}\non_unrepresentable: set_null").replace(
            SOURCE, "{type: salesforce, connection: crm}"
        ),
        "DEF056 DEF056",
        "7:21 8:25",
    ),
    ("limits of no quarantine", rule("quarantine: {max_rows: 5}"), "DEF052", "7:17"),
    ("a repair without comparisons", GOOD + "verify: {repair: ask}\n", "DEF105", "8:10"),
    ("a sample without comparisons", GOOD + "verify: {sample: 0.1}\n", "DEF105", "8:10"),
    ("a connection of a folder", swap("/data/lake/shop", "/data/lake/shop, connection: s3_lake"), "DEF051", "4:62"),
    ("a connection of a folder for staging", swap("/_cdc,", "/_cdc, connection: s3_lake,"), "DEF105", "7:50"),
    ("a share above all", rule("on_bad_record: quarantine\nquarantine: {max_share: 1.5}"), "DEF046", "8:29"),
    ("an unknown way with bad records", rule("on_bad_record: skip"), "DEF046", "7:20"),
    ("D-22 include and exclude", rule("columns: {include: [a], exclude: [b]}"), "DEF022", "7:38"),
    (
        "D-23 two tables with one target",
        GOOD.replace("staging:", "  - source: public.ORDERS\nstaging:"),
        "DEF015",
        "7:5",
    ),
    (
        "D-23 two target names that differ by case",
        GOOD.replace("staging:", "  - {source: public.b, target: Orders}\nstaging:"),
        "DEF015",
        "7:32",
    ),
    ("D-23 a table listed twice", GOOD.replace("staging:", "  - source: public.orders\nstaging:"), "DEF045", "7:13"),
    ("D-23 a column listed twice", rule("key: [a, a]"), "DEF045", "7:14"),
    ("D-23 a target name for a pattern", swap("public.orders", "public.*\n    target: all"), "DEF049", "7:13"),
    ("D-24 a reserved column", rule("key: [_cdc_order]"), "DEF026", "7:11"),
    ("D-24 a reserved target name", rule("target: _CDC_x"), "DEF013", "7:13"),
    ("D-25 SQL as a filter", rule("where: state = 'open'"), "DEF027", "7:12"),
    (
        "a number with more digits than a double has",
        rule("where: [{column: a, op: '<=', value: 12345678901234567.89}]"),
        "DEF106",
        "7:42",
    ),
    ("D-25 a filter without value", rule("where: [{column: a, op: '='}]"), "DEF027", "7:13"),
    ("D-25 a filter with a value too many", rule("where: [{column: a, op: is null, value: 1}]"), "DEF027", "7:45"),
    ("D-25 one value for a list", rule("where: [{column: a, op: in, value: 1}]"), "DEF027", "7:40"),
    ("D-25 a list for one value", rule("where: [{column: a, op: '<', value: [1]}]"), "DEF027", "7:41"),
    ("D-25 an unknown comparison", rule("where: [{column: a, op: like, value: x}]"), "DEF046", "7:29"),
    ("D-27 a password", swap("cdc_shop", "cdc_shop, password: hunter2"), "DEF029", "3:70"),
    (
        "D-27 a password of a source of unknown type",
        swap(
            "{type: postgres, connection: shop_db, publication: cdc_shop}", "{typ: x, connection: a, password: hunter2}"
        ),
        "DEF010 DEF029",
        "3:10 3:33",
    ),
    ("D-27 a password in a URL", swap("/data/lake/shop", "s3://me:hunter2@lake/x"), "DEF029", "4:33"),
    (
        "D-27 a secret Spark setting",
        GOOD + "spark: {conf: {spark.hadoop.fs.s3a.secret.key: hunter2}}\n",
        "DEF029",
        "8:16",
    ),
    ("D-27 a key in clear", swap("cdc_shop", "AKIAHUNTER2HUNTER222"), "DEF029", "3:60"),
    ("D-29 packages", GOOD + "spark: {conf: {spark.jars.packages: a:b:1}}\n", "DEF030", "8:16"),
    ("D-29 a class", GOOD + "spark: {conf: {spark.io.compression.codec: x.Evil}}\n", "DEF030", "8:44"),
    ("D-29 the master", GOOD + "spark: {conf: {spark.master: yarn}}\n", "DEF030", "8:16"),
    ("D-29 the class path", GOOD + "spark: {conf: {spark.driver.extraClassPath: /x}}\n", "DEF030", "8:16"),
    ("D-29 Java options", GOOD + "spark: {conf: {spark.executor.extraJavaOptions: -Dx=y}}\n", "DEF030", "8:16"),
    ("D-29 the commit token", GOOD + "spark: {conf: {spark.databricks.delta.write.txnVersion: 1}}\n", "DEF030", "8:16"),
    ("D-29 something of another system", GOOD + "spark: {conf: {hive.x: a}}\n", "DEF030", "8:16"),
    ("D-30 memory without unit", GOOD + "spark: {conf: {spark.driver.memory: 2}}\n", "DEF031", "8:37"),
    ("D-30 memory in a unit that is none", GOOD + "spark: {conf: {spark.executor.memory: 2x}}\n", "DEF031", "8:39"),
    ("D-39 too large a number", GOOD + "resync: {max_delete: 1e400}\n", "DEF038", "8:22"),
    ("D-39 not a number", GOOD + "resync: {max_delete: .nan}\n", "DEF038", "8:22"),
    ("D-39 infinity", GOOD + "resync: {max_delete: -.inf}\n", "DEF038", "8:22"),
    ("D-39 a share above one", GOOD + "resync: {max_delete: 20}\n", "DEF046", "8:22"),
    ("D-39 fewer than no retries", GOOD + "dag: {retries: -1}\n", "DEF046", "8:16"),
    ("an unknown source type", swap("type: postgres", "type: postgresql"), "DEF048", "3:16"),
    ("an unknown target type", swap("type: delta", "type: delte"), "DEF048", "4:16"),
    ("an unknown way to delete", rule("on_delete: sofd"), "DEF046", "7:16"),
    ("a relative location", swap("/data/lake/shop", "data/lake"), "DEF047", "4:33"),
    ("a location with parent folders", swap("/data/lake/shop", "/data/../lake"), "DEF047", "4:33"),
    ("a location on an unknown storage", swap("/data/lake/shop", "hdfs://lake/shop"), "DEF047", "4:33"),
    ("an invalid name of a bucket", swap("/data/lake/shop", "s3://My_Bucket/x"), "DEF047", "4:33"),
    ("a prefix with an empty step", swap("/data/lake/shop", "s3://lake//shop"), "DEF047", "4:33"),
    ("a prefix with parent folders", swap("/data/lake/shop", "s3://lake/../shop"), "DEF047", "4:33"),
    ("one bucket by two connections", ONE_BUCKET, "DEF050", "7:49"),
    ("an asset without a name", GOOD + "triggered_by: ['']\n", "DEF013", "8:16"),
    ("a retention shorter than repeated deliveries", SHORT_RETENTION, "DEF054", "7:46"),
    (
        "Iceberg with two locations",
        swap(FOLDERS, "{type: iceberg, location: /lake, connection: rest}"),
        "DEF051",
        "4:54",
    ),
    (
        "Iceberg in a folder, with a store",
        swap(FOLDERS, "{type: iceberg, location: /lake, storage: s3}"),
        "DEF051",
        "4:51",
    ),
    ("Iceberg in a bucket", swap(FOLDERS, "{type: iceberg, location: 's3://lake/shop'}"), "DEF051", "4:35"),
    ("Iceberg without a location", swap(FOLDERS, "{type: iceberg, catalog: lake.shop}"), "DEF011", "4:9"),
    (
        "Iceberg, a catalog of three parts",
        swap(FOLDERS, "{type: iceberg, location: /lake, catalog: a.b.c}"),
        "DEF051",
        "4:51",
    ),
    ("empty text", GOOD + "dag: {owner: ''}\n", "DEF018", "8:14"),
    ("D-34 records are read too young", swap(SOURCE, f"{CRM}, commit_latency: 30s}}"), "DEF035", "3:86"),
    ("D-34 no latency at all", swap(SOURCE, f"{CRM}, commit_latency: 0s}}"), "DEF017", "3:86"),
    ("polled objects without a list", swap(SOURCE, "{type: salesforce_poll, connection: crm}"), "DEF011", "3:9"),
    ("a clock that is set forward", swap(SOURCE, f"{ERP}, time_zone: Europe/Paris}}"), "DEF053", "3:108"),
    ("a column for one table only", swap(SOURCE, f"{ERP}, timestamp_columns: [a]}}"), "DEF018", "3:116"),
    ("polled without a column", swap(SOURCE, ERP.partition(", timestamp")[0] + "}"), "DEF011", "3:9"),
    ("a history of rows that are marked as deleted", rule("history: scd2\non_delete: soft"), "DEF082", "8:16"),
    ("a log of rows that are read twice", rule("history: log").replace(SOURCE, f"{ERP}}}"), "DEF081", "7:14"),
    ("a log of objects that are polled", rule("history: log").replace(SOURCE, f"{CRM}}}"), "DEF081", "7:14"),
    ("a history that is none", rule("history: scd3"), "DEF046", "7:14"),
]


@pytest.mark.parametrize(("text", "code", "location"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_mistake_is_reported_once_with_its_code_and_location(text: str | bytes, code: str, location: str) -> None:
    found = problems(text)
    assert [problem.code for problem in found] == code.split()
    assert [problem.where.split(" ")[0] for problem in found] == [f"shop.yaml:{at}" for at in location.split()]
    assert all(" " in problem.where or problem.code in OF_THE_FILE for problem in found), "the key is named"
    assert "hunter2" not in " ".join(map(str, found)).lower()
    assert all(len(problem.found) < 200 for problem in found)


PATHS = [
    (swap("tables:", "tabels:"), "tabels"),
    (rule("on_delete: sofd"), "tables[0].on_delete"),
    (GOOD.replace("staging:", "  - {source: b, on_delete: x}\nstaging:"), "tables[1].on_delete"),
    (rule("key: [no]"), "tables[0].key[0]"),
    (rule("key: [a, a]"), "tables[0].key[1]"),
    (rule("key: []"), "tables[0].key"),
    (rule("where: [{column: a, op: '='}]"), "tables[0].where[0].value"),
    (rule("columns: {include: [_cdc_x]}"), "tables[0].columns.include[0]"),
    (rule("columns: {exclude: [s]}\nwhere: [{column: s, op: is null}]"), "tables[0].where[0].column"),
    (GOOD.replace("staging:", "  - source: public.ORDERS\nstaging:"), "tables[1].target"),
    (GOOD.replace("staging:", "  - source: public.orders\nstaging:"), "tables[1].source"),
    (swap(", publication: cdc_shop", ""), "source.publication"),
    (swap("connection: shop_db, ", ""), "source.connection"),
    (swap("target: {type: delta, location: /data/lake/shop}\n", ""), "target"),
    (swap("7d", "7"), "staging.retain"),
    (GOOD + "spark: {conf: {spark.master: yarn}}\n", "spark.conf['spark.master']"),
    (GOOD + "name: shop2\n", "name"),
    (swap("cdc_shop", "&x cdc_shop"), "source.publication"),
    (swap("cdc_shop", "AKIAHUNTER2HUNTER222"), "source.publication"),
    ("name: shop\ntables:\n  - {source: a]\n", "tables[0].source"),
]
OF_THE_FILE = ("DEF001", "DEF002", "DEF003", "DEF007", "DEF008", "DEF018")


@pytest.mark.parametrize(("text", "path"), PATHS)
def test_a_mistake_names_the_path_of_its_key(text: str, path: str) -> None:
    (problem,) = problems(text)
    assert problem.where.split(" ", 1)[1] == path


NEAREST = [
    (swap("tables:", "tabels:"), "'tables'"),
    (swap("publication:", "publicaton:"), "'publication'"),
    (rule("on_delete: sofd"), "'soft'"),
    (swap("type: postgres", "type: postgresql"), "'postgres'"),
]


@pytest.mark.parametrize(("text", "name"), NEAREST)
def test_the_nearest_valid_name_is_offered(text: str, name: str) -> None:
    assert name in problems(text)[0].do


def test_all_mistakes_of_a_file_are_reported_in_the_order_of_the_lines() -> None:
    text = (
        "name: Shop\n"
        "schedule: 5\n"
        "source: {type: postgres, connection: shop_db}\n"
        "tables:\n"
        "  - {source: a.b, key: id}\n"
        "  - {source: a.c, key: [_cdc_x]}\n"
        "  - {source: a.c}\n"
        "staging: {location: x, retain: 7}\n"
        "spark: {conf: {spark.master: yarn, spark.driver.memory: 2}}\n"
        "dag: {retries: many, tags: shop}\n"
        "colour: blue\n"
    )
    assert [(p.code, p.where.split(":")[1]) for p in problems(text)] == [
        ("DEF011", "1"),
        ("DEF013", "1"),
        ("DEF016", "2"),
        ("DEF011", "3"),
        ("DEF018", "5"),
        ("DEF026", "6"),
        ("DEF045", "7"),
        ("DEF047", "8"),
        ("DEF017", "8"),
        ("DEF030", "9"),
        ("DEF031", "9"),
        ("DEF018", "10"),
        ("DEF013", "10"),
        ("DEF010", "11"),
    ]


def test_a_message_shows_the_value_that_yaml_read() -> None:
    assert problems(rule("key: [no]"))[0].found == "boolean false, written as 'no'"
    assert problems(swap("cdc_shop", "0015"))[0].found == "number 13, written as '0015'"
    assert problems(swap("cdc_shop", "22:22"))[0].found == "number 1342, written as '22:22'"
    assert problems(swap("cdc_shop", "2024-01-01"))[0].found == "date 2024-01-01"
    assert problems(swap("cdc_shop", "[a]"))[0].found == "a list"


def test_a_syntax_error_shows_the_line_with_a_caret() -> None:
    assert problems("name: shop\ntables:\n  - {source: a]\n")[0].found == "\n    - {source: a]\n                ^"


def test_a_syntax_error_does_not_show_a_line_that_may_hold_a_secret() -> None:
    text = str(problems("name: shop\npassword: [hunter2}\n")[0])
    assert "hunter2" not in text
    assert "shop.yaml:2:" in text


def test_long_texts_are_cut_and_control_characters_are_not_shown() -> None:
    found = problems(swap("name: shop", 'name: "' + "\\e" + "x" * 500 + '"'))[0].found
    assert re.fullmatch(r"text '\?x{38}…'", found)


def test_a_known_key_that_holds_a_tag_is_not_reported_as_missing_too() -> None:
    assert [p.code for p in problems(swap("{type: delta, location: /data/lake/shop}", "!x {type: delta}"))] == [
        "DEF005"
    ]


def test_a_template_is_plain_text_with_a_warning() -> None:
    loaded = load_text(swap("/data/lake/shop", "'/data/{{ ds }}'").replace(" ds ", "ds").encode(), "shop.yaml")
    assert loaded.definition.target.location == "/data/{{ds}}"
    assert [(w.code, w.where) for w in loaded.warnings] == [("DEFW01", "shop.yaml:4:33 target.location")]


def test_spark_settings_may_be_numbers_and_booleans_but_no_ambiguous_yaml() -> None:
    conf = "spark: {conf: {spark.sql.shuffle.partitions: 8, spark.speculation: true, spark.memory.fraction: 0.5}}\n"
    assert load(GOOD + conf).spark.conf == {
        "spark.sql.shuffle.partitions": "8",
        "spark.speculation": "true",
        "spark.memory.fraction": "0.5",
    }
    for text in ("on", "010", "1:30"):
        assert problems(GOOD + f"spark: {{conf: {{spark.speculation: {text}}}}}\n")[0].code == "DEF018"


def test_an_excluded_column_may_have_a_reserved_or_secret_name() -> None:
    assert load(rule("columns: {exclude: [_cdc_order, password]}")).tables[0].columns.exclude == (
        "_cdc_order",
        "password",
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(DefinitionInvalid) as caught:
            load_file(path)
        assert [(p.code, p.where) for p in caught.value.problems] == [("DEF009", str(path))]
