"""Change events made with fastavro from hand-written schemas, in the form of a Salesforce org."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.decode import EventDecoder
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, parse_description
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState

CHANNEL = "/data/ChangeEvents"
START = ChannelPosition(bytes.fromhex("00000000001790500000"), 7)
ADA, BOB, EVE = "001000000000001AAA", "001000000000002AAA", "001000000000003AAA"
QUIET_S = 1_772_370_000
"""The time of a keepalive: 2026-03-01T13:00:00Z."""
NOON_MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z
CHANGE_TYPES = ["CREATE", "UPDATE", "DELETE", "UNDELETE"]
CHANGE_TYPES += ["GAP_CREATE", "GAP_UPDATE", "GAP_DELETE", "GAP_UNDELETE", "GAP_OVERFLOW", "SNAPSHOT"]

TEXTS = {"type": "array", "items": "string"}
HEADER_FIELDS = [
    {"name": "entityName", "type": "string"},
    {"name": "recordIds", "type": TEXTS},
    {"name": "changeType", "type": {"type": "enum", "name": "ChangeType", "symbols": CHANGE_TYPES}},
    {"name": "changeOrigin", "type": "string"},
    {"name": "transactionKey", "type": "string"},
    {"name": "sequenceNumber", "type": "int"},
    {"name": "commitTimestamp", "type": "long"},
    {"name": "commitNumber", "type": "long"},
    {"name": "commitUser", "type": "string"},
    *({"name": name, "type": TEXTS} for name in ("nulledFields", "diffFields", "changedFields")),
]


def field(name: str, meaning: str = "Text", kind: Any = "string") -> dict[str, Any]:
    kinds = kind if isinstance(kind, list) else [kind]
    return {"name": name, "type": ["null", *kinds], "doc": f"Data:{meaning}", "default": None}


def record(name: str, *members: tuple[str, str]) -> dict[str, Any]:
    fields = [{"name": member, "type": ["null", kind], "default": None} for member, kind in members]
    return {"type": "record", "name": name, "fields": fields}


ADDRESS = record(
    "Address",
    *((name, "string") for name in ("Street", "City", "State", "PostalCode", "Country", "StateCode", "CountryCode")),
    ("Latitude", "double"),
    ("Longitude", "double"),
    ("GeocodeAccuracy", "string"),
)
PERSON_NAME = record("Switchable_PersonName", *((name, "string") for name in ("Salutation", "FirstName", "LastName")))

ACCOUNT_FIELDS = [
    field("Name", "Switchable_PersonName", ["string", PERSON_NAME]),  # 1
    field("Type", "DynamicEnum"),
    field("RecordTypeId", "EntityId"),
    field("ParentId", "EntityId"),
    field("BillingAddress", "Address", ADDRESS),  # 5
    field("ShippingAddress", "Address", "Address"),
    field("Phone", "Phone"),
    field("Fax", "Phone"),
    field("AccountNumber"),
    field("Website", "Url"),  # 10
    field("Sic"),
    field("Industry", "DynamicEnum"),
    field("AnnualRevenue", "Currency", "double"),
    field("NumberOfEmployees", "Integer", "int"),
    field("Ownership", "DynamicEnum"),  # 15
    field("TickerSymbol"),
    field("Description", "StringPlusClob"),
    field("Rating", "DynamicEnum"),
    field("Site"),
    field("OwnerId", "EntityId"),  # 20
    field("CreatedDate", "DateTime", "long"),
    field("CreatedById", "EntityId"),
    field("LastModifiedDate", "DateTime", "long"),
    field("LastModifiedById", "EntityId"),
    field("Founded__c", "DateOnly", "long"),  # 25
    field("Opens__c", "TimeOnly", "long"),
    field("Interests__c", "MultiEnum"),
    field("Active__c", "Boolean", "boolean"),
    field("Place__c", "Location", record("Location", ("Latitude", "double"), ("Longitude", "double"))),
    field("Score__c", "Double", "double"),  # 30
]
INDEX = {one["name"]: position for position, one in enumerate(ACCOUNT_FIELDS, 1)}


def avro_schema(name: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    header = {"type": "record", "name": "ChangeEventHeader", "fields": HEADER_FIELDS}
    first = {"name": "ChangeEventHeader", "type": header, "doc": "Data:ComplexValueType"}
    return {"type": "record", "name": name, "namespace": "com.sforce.eventbus", "fields": [first, *fields]}


INVOICE_FIELDS = [field("Name"), field("Amount__c", "Currency", "double"), field("Total__c", "Double", "double")]
CONTACT_NAME = field("Name", "PersonName", record("PersonName", ("FirstName", "string"), ("LastName", "string")))
SCHEMAS: dict[str, dict[str, Any]] = {
    "account-1": avro_schema("AccountChangeEvent", ACCOUNT_FIELDS),
    "invoice-1": avro_schema("Invoice__ChangeEvent", INVOICE_FIELDS),
    "contact-1": avro_schema("ContactChangeEvent", [CONTACT_NAME, field("Email", "Email")]),
    "user-1": avro_schema("UserChangeEvent", [field("Username"), field("UserPreferences", "", TEXTS)]),
}


def described_field(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nillable": True, "calculated": False, "compoundFieldName": None, **more}


def number(name: str, kind: str, precision: int, scale: int, **more: Any) -> dict[str, Any]:
    return described_field(name, kind, precision=precision, scale=scale, **more)


def components(compound: str, *names: str) -> list[dict[str, Any]]:
    return [
        number(name, "double", 18, 15, compoundFieldName=compound)
        if name.removesuffix("__s").endswith(("Latitude", "Longitude"))
        else described_field(name, compoundFieldName=compound)
        for name in names
    ]


def address(prefix: str) -> list[dict[str, Any]]:
    names = [f"{prefix}{member['name']}" for member in ADDRESS["fields"]]
    return [*components(f"{prefix}Address", *names), described_field(f"{prefix}Address", "address")]


def required(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return described_field(name, kind, nillable=False, **more)


DESCRIBES: dict[str, dict[str, Any]] = {
    "Account": {
        "name": "Account",
        "queryable": True,
        "fields": [
            required("Id", "id"),
            required("IsDeleted", "boolean"),
            described_field("MasterRecordId", "reference"),
            required("Name"),
            *components("Name", "LastName", "FirstName", "Salutation"),
            *(described_field(name) for name in ("Type", "RecordTypeId", "ParentId")),
            *address("Billing"),
            *address("Shipping"),
            *(described_field(name) for name in ("Phone", "Fax", "AccountNumber", "Website", "Sic", "Industry")),
            number("AnnualRevenue", "currency", 18, 2),
            described_field("NumberOfEmployees", "int"),
            *(described_field(name) for name in ("Ownership", "TickerSymbol", "Description", "Rating", "Site")),
            required("OwnerId", "reference"),
            required("CreatedDate", "datetime"),
            required("CreatedById", "reference"),
            required("LastModifiedDate", "datetime"),
            required("LastModifiedById", "reference"),
            required("SystemModstamp", "datetime"),
            described_field("Founded__c", "date"),
            described_field("Opens__c", "time"),
            described_field("Interests__c", "multipicklist"),
            required("Active__c", "boolean"),
            described_field("Place__c", "location"),
            *components("Place__c", "Place__Latitude__s", "Place__Longitude__s"),
            number("Score__c", "double", 10, 3),
        ],
    },
    "Invoice__c": {
        "name": "Invoice__c",
        "queryable": True,
        "fields": [
            required("Id", "id"),
            described_field("Name"),
            number("Amount__c", "currency", 16, 2),
            number("Total__c", "double", 18, 2, calculated=True),
            described_field("Scan__c", "base64"),
        ],
    },
    "Contact": {
        "name": "Contact",
        "queryable": True,
        "fields": [
            required("Id", "id"),
            *components("Name", "FirstName", "LastName"),
            required("Name"),
            described_field("Email", "email"),
        ],
    },
    "User": {
        "name": "User",
        "queryable": True,
        "fields": [
            required("Id", "id"),
            described_field("Username"),
            required("UserPreferencesDarkMode", "boolean"),
            required("UserPreferencesSounds", "boolean"),
        ],
    },
}


def described_as(entity: str) -> ObjectSchema:
    return parse_description(DESCRIBES[entity])


def event_schema(schema_id: str) -> EventSchema:
    return parse_event_schema(schema_id, json.dumps(SCHEMAS.get(schema_id)))


def task(entity: str, held: TableSchema | None = None, **rule: Any) -> TableTask:
    """As a run sees the table. ``held``: the schema of the target."""
    made = TableRule(entity, **rule)
    schema = selected_schema(made, described_as(entity).schema)
    state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
    control = held and ControlRecord("crm", entity, "log", "me", "a", 1, 1, "0", state, schema=held)
    return TableTask(entity, entity, schema, made, "0" * 64, TableState.REPLICATING, control or None)


def without(*names: str) -> Columns:
    return Columns(exclude=names)


REPLAYS = itertools.count(1)


def replay_id() -> bytes:
    """Ten bytes, like real ones, in no order."""
    return (next(REPLAYS) * 7919 % 100_003).to_bytes(8, "big") + b"\0\0"


def payload(schema_id: str, header: Mapping[str, Any], **values: Any) -> bytes:
    stream = io.BytesIO()
    schema = fastavro.parse_schema(SCHEMAS[schema_id])
    fastavro.schemaless_writer(stream, schema, {"ChangeEventHeader": header, **values})
    return stream.getvalue()


def event(
    change: str = "UPDATE",
    ids: Sequence[str] = (ADA,),
    *,
    schema: str = "account-1",
    entity: str = "Account",
    tx: str = "tx-1",
    seq: int = 1,
    at_ms: int = NOON_MS,
    changed: Sequence[str] = (),
    nulled: Sequence[str] = (),
    diffs: Sequence[str] = (),
    **values: Any,
) -> ChannelEvent:
    header = {
        "entityName": entity,
        "recordIds": list(ids),
        "changeType": change,
        "changeOrigin": "com/salesforce/api/soap/66.0;client=tests",
        "transactionKey": tx,
        "sequenceNumber": seq,
        "commitTimestamp": at_ms,
        "commitNumber": 10**18 + 1,
        "commitUser": "005000000000001AAA",
        "nulledFields": list(nulled),
        "diffFields": list(diffs),
        "changedFields": list(changed),
    }
    return ChannelEvent(replay_id(), schema, payload(schema, header, **values))


def updated(ids: Sequence[str] = (ADA,), tx: str = "tx-1", seq: int = 1, **values: Any) -> ChannelEvent:
    """An update of whole Account fields: their bits are set."""
    bits = sum(1 << INDEX[name] for name in values)
    return event("UPDATE", ids, tx=tx, seq=seq, changed=[f"0x{bits:08X}"], **values)


class Reading:
    """A decoder of prepared events. ``decode`` feeds them and returns their change records."""

    def __init__(self, *tasks: TableTask, position: ChannelPosition = START, epoch: int = 3) -> None:
        self.describes: list[str] = []
        self.answers: dict[str, ObjectSchema] = {}
        self.decoder = EventDecoder(
            tasks or (task("Account"),), self._describe, event_schema, CHANNEL, Transactions(position, epoch)
        )

    def _describe(self, entity: str) -> ObjectSchema:
        self.describes.append(entity)
        return self.answers.get(entity) or described_as(entity)

    def items(self, *events: ChannelEvent) -> list[StreamItem]:
        self.decoder.feed(Delivery(events)) if events else None
        found = list(self.decoder.items)
        self.decoder.items.clear()
        return found

    def quiet(self, latest: bytes = b"") -> list[StreamItem]:
        self.decoder.feed(Delivery((), latest, QUIET_S if latest else 0))
        return self.items()

    def decode(self, *events: ChannelEvent) -> list[ChangeRecord]:
        return [item for item in self.items(*events) if isinstance(item, ChangeRecord)]

    def after(self, *events: ChannelEvent) -> dict[str, Any]:
        """The values of the one record of the events, without the id."""
        (record,) = self.decode(*events)
        assert record.after is not None
        image = json.loads(record.after)
        assert isinstance(image, dict)
        del image["Id"]
        return image
