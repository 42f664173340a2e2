"""A valid definition and variants of it."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.loader import load_text

GOOD = """\
name: shop
schedule: "*/5 * * * *"
source: {type: postgres, connection: shop_db, publication: cdc_shop}
target: {type: delta, location: /data/lake/shop}
tables:
  - source: public.orders
staging: {location: /data/lake/_cdc, retain: 7d}
"""


SOURCE = "{type: postgres, connection: shop_db, publication: cdc_shop}"
FOLDERS = "{type: delta, location: /data/lake/shop}"

ONE_BUCKET = GOOD.replace("/data/lake/shop}", "s3://lake/shop, connection: aws_a}").replace(
    "/data/lake/_cdc,", "s3://lake/_cdc, connection: aws_b,"
)


def load(text: str | bytes) -> Definition:
    return load_text(text if isinstance(text, bytes) else text.encode(), "shop.yaml").definition


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(DefinitionInvalid) as caught:
        load(text)
    return caught.value.problems


def swap(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def rule(text: str) -> str:
    """The valid file with further keys of its one table."""
    return GOOD.replace("public.orders\n", "public.orders\n" + "".join(f"    {line}\n" for line in text.splitlines()))
