"""A job that does in small what a tick does in large. Its only use is the classes it makes the JVM load.

Argument: an empty folder. It dies without harm at any moment: nothing outside that folder is touched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from spark_jobs import sessions


def main(folder: Path) -> None:
    spark = sessions.build("cdc-warm-up", "delta")
    table, batch = folder / "table", folder / "batch"
    rows = spark.range(1000).selectExpr("id", "cast(id as string) as text", "timestamp_millis(id) as at", "id % 7 as n")
    rows.mapInArrow(unchanged, rows.schema).write.parquet(str(batch))
    ranked = (
        "row_number() over (partition by n order by at desc) as rank",
        "from_json(concat('{\"a\":', id, '}'), 'a bigint').a as a",
    )
    changes = spark.read.parquet(str(batch)).selectExpr("*", *ranked).where("rank <= 50").drop("rank", "a")
    changes.sortWithinPartitions("id").write.format("delta").save(str(table))
    sql = sessions.fresh(spark).sql
    sql(f"alter table delta.`{table}` set tblproperties (delta.enableDeletionVectors = true)")
    sql(
        f"merge into delta.`{table}` t using parquet.`{batch}` s on t.id = s.id and t.id between 0 and 2000 "
        "when matched and s.n = 1 then delete when matched then update set text = s.text when not matched then insert *"
    )
    sql(f"select n, count(*), max(at) from delta.`{table}` group by n").collect()
    spark.stop()


def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches


if __name__ == "__main__":
    main(Path(sys.argv[1]))
