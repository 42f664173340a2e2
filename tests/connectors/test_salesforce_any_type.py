"""Values of any type, and types that are unknown: what both APIs send of one record is the same row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.any_type import json_converter, text_converter
from airflow_cdc_provider.connectors.sources.salesforce.types import parse_description, unknown_types
from airflow_cdc_provider.connectors.sources.salesforce.values import WrongValue
from airflow_cdc_provider.connectors.sources.salesforce_poll import reading
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from tests.connectors.salesforce_events import described_field
from tests.connectors.test_salesforce_poll import LATER_S, crm, records

VALUES = (True, False, 5000.0, 139_000_000.5, 1_390_000_000.0, 0.00012, -0.5, 7, "NA", "1.10", '"a",\nb', None)
TIMESTAMP = "2026-03-01T12:00:00.000Z"


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


def any_column() -> Column:
    (column,) = parse_description({"name": "X", "fields": [described_field("NewValue", "anyType")]}).schema.columns
    return column


@pytest.mark.parametrize(
    ("cell", "from_rest", "expected"),
    [
        ("true", "true", "true"),
        ("false", "false", "false"),
        ("5000.0", "5000.0", "5000.0"),
        ("1.39E8", "1.39E8", "139000000.0"),
        ("139000000.0", "1.39E8", "139000000.0"),
        ("1.39E8", "139000000.0", "139000000.0"),
        ("1.0E-4", "0.0001", "0.0001"),
        ("-7", "-7", "-7"),
        ("1.10", '"1.10"', "1.10"),
        ("2026-03-01T12:00:00.000Z", '"2026-03-01T12:00:00.000+0000"', "2026-03-01T12:00:00.000Z"),
        ("2026-03-01", '"2026-03-01"', "2026-03-01"),
        ("", "null", None),
    ],
)
def test_a_value_of_any_type_is_the_same_text_from_both_apis(cell: str, from_rest: str, expected: str | None) -> None:
    column = any_column()
    values = text_converter(column)(cell), json_converter(column)(json.loads(from_rest, parse_float=Decimal))
    assert [json.loads(value) for value in values] == [expected, expected]


def test_a_value_with_members_is_none_of_any_type() -> None:
    with pytest.raises(WrongValue):
        json_converter(any_column())({"street": "x"})


@pytest.mark.server
@pytest.mark.parametrize("scientific", [False, True])
def test_a_history_of_an_object_is_copied_and_polled(
    org: SalesforceOrg, monkeypatch: pytest.MonkeyPatch, scientific: bool
) -> None:
    org.bulk.scientific = scientific
    values = [*VALUES, TIMESTAMP]

    def load() -> list[str]:
        return org.load("AccountHistory", [{"Field": "x", "OldValue": one, "NewValue": one} for one in values])

    copy = crm(org, objects=["AccountHistory"])
    before = load()
    copy.copy("AccountHistory")
    polled = load()
    org.clock.advance(LATER_S)
    rows = {record.key_before: record.after for record in records(copy.window())}
    first, later = ([copy.rows["AccountHistory"][one]["NewValue"] for one in ids] for ids in (before, polled))
    assert first == later
    assert later[:5] == ["true", "false", "5000.0", "139000000.5", "1390000000.0"] and later[-1] == TIMESTAMP
    monkeypatch.setattr(reading, "BULK_FROM_ROWS", 1)
    org.clock.advance(5)
    again = {record.key_before: record.after for record in records(copy.window())}
    assert again.keys() == rows.keys() and again == rows, "the same bytes from both APIs"


@pytest.mark.server
def test_a_column_of_an_unknown_type_is_refused_by_its_name_and_can_be_left_out(org: SalesforceOrg) -> None:
    org.store.add_field("Account", Field("Tree__c", "hologram", None))
    copy = crm(org, objects=["Account", "Contact"])
    tasks = [copy.task("Account"), copy.task("Contact")]
    found = copy.source.refused(tasks)
    assert list(found) == ["Account"] and (found["Account"].code, found["Account"].columns) == ("SRC118", ("Tree__c",))
    assert "Tree__c (hologram)" in found["Account"].found
    assert [problem.code for problem in copy.source.check(tasks)] == ["SRC118"]
    with pytest.raises(CheckFailed, match="SRC118"), copy.source.copy(tasks[0], 1, copy.position, 4):
        pass
    assert copy.source.refused([copy.task("Account", columns=Columns(exclude=("Tree__c",)))]) == {}


def test_the_types_of_the_documentation_are_known() -> None:
    names = "string textarea picklist multipicklist combobox id reference email phone url encryptedstring time anyType"
    numbers = "int long double currency percent boolean date datetime DataCategoryGroupReference"
    fields: list[dict[str, Any]] = [described_field(name, name) for name in (*names.split(), *numbers.split())]
    assert unknown_types(parse_description({"name": "X", "fields": fields}).schema) == {}
