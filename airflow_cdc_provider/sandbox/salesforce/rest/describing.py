"""Versions, objects, fields and event schemas."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.errors import not_found
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType
from airflow_cdc_provider.sandbox.salesforce.rest.records import visible_table
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.transactions import AUDIT
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

VERSIONS = (("Winter '26", "65.0"), ("Spring '26", "66.0"), ("Summer '26", "67.0"))
SOAP_TYPES = {"boolean": "xsd:boolean", "int": "xsd:int", "date": "xsd:date", "datetime": "xsd:dateTime"}
SOAP_TYPES |= {"time": "xsd:time", "base64": "xsd:base64Binary", "id": "tns:ID", "reference": "tns:ID"}
SOAP_TYPES |= dict.fromkeys(("double", "currency", "percent"), "xsd:double")
SOAP_TYPES |= {"anyType": "xsd:anyType", "address": "urn:address", "location": "urn:location"}


def versions(org: OrgState, request: Request) -> Response:
    return json_response([{"label": label, "url": f"/services/data/v{one}", "version": one} for label, one in VERSIONS])


def resources(org: OrgState, request: Request, user: User, version: str) -> Response:
    base = f"/services/data/{version}"
    names = ("sobjects", "query", "queryAll", "limits", "jobs", "composite", "tooling")
    return json_response({name: f"{base}/{name}" for name in names} | {"identity": f"/id/{org.org_id}/{user.id}"})


def all_objects(org: OrgState, request: Request, user: User, version: str) -> Response:
    types = [table.type for table in org.store.tables.values() if user.access_to(table.type.name) is not Access.NONE]
    objects = [_summary(org, one, version) for one in types]
    objects += [_event_summary(one, version) for one in types if one.name in org.channels.captured()]
    return json_response({"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": objects})


def one_object(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    """The summary of an object, without fields."""
    table = visible_table(org, user, name)
    return json_response({"objectDescribe": _summary(org, table.type, version), "recentItems": []})


def describe(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    """An object, or a change event with the fields that are visible to the user. Supports ``If-Modified-Since``."""
    events = _events(org)
    if name in events:
        return _describe_event(org, user, version, events[name])
    table = visible_table(org, user, name)
    changed_ms = org.described_ms(table.type.name)
    since = request.headers.get("if-modified-since")
    headers = {"Last-Modified": formatdate(changed_ms // 1000, usegmt=True)}
    if since and parsedate_to_datetime(since).timestamp() >= changed_ms // 1000:
        return Response(304, headers=headers)
    body = _summary(org, table.type, version)
    body["fields"] = [_field(table.type, field) for field in user.fields(table.type)]
    body["childRelationships"] = []
    body["recordTypeInfos"] = []
    return json_response(body, headers=headers)


def event_schema(org: OrgState, request: Request, user: User, version: str, name: str) -> Response:
    """The current schema of ``<Object>ChangeEvent``."""
    events = _events(org)
    if name not in events:
        raise not_found()
    return _schema(org, org.schemas.current(events[name].name).id)


def schema_by_id(org: OrgState, request: Request, user: User, version: str, schema_id: str) -> Response:
    return _schema(org, schema_id)


def _events(org: OrgState) -> dict[str, ObjectType]:
    """The captured objects by the name of their event."""
    types = [org.store.table(name).type for name in org.channels.captured()]
    return {one.event_name: one for one in types}


def _describe_event(org: OrgState, user: User, version: str, one: ObjectType) -> Response:
    user.require(one)
    visible = {field.name for field in user.fields(one)}
    fields = [_field(one, field) for field in one.event_fields if field.name in visible]
    return json_response({**_event_summary(one, version), "fields": fields})


def _schema(org: OrgState, schema_id: str) -> Response:
    schema = org.schemas.by_id(schema_id)
    if schema is None:
        raise not_found()
    return Response(200, schema.json[:-1].encode() + f',"uuid":"{schema.id}"}}'.encode())


def _summary(org: OrgState, one: ObjectType, version: str) -> dict[str, Any]:
    base = f"/services/data/{version}/sobjects/{one.name}"
    return {
        "name": one.name,
        "label": one.name.removesuffix("__c").replace("_", " "),
        "labelPlural": one.name.removesuffix("__c").replace("_", " ") + "s",
        "keyPrefix": one.prefix,
        "custom": one.custom,
        "queryable": one.queryable,
        "retrieveable": True,
        "createable": True,
        "updateable": True,
        "deletable": True,
        "undeletable": "IsDeleted" in one.by_name,
        "replicateable": one.replicateable,
        "searchable": True,
        "triggerable": True,
        "mergeable": "MasterRecordId" in one.by_name,
        "layoutable": True,
        "customSetting": False,
        "deprecatedAndHidden": False,
        "hasSubtypes": False,
        "urls": {"sobject": base, "describe": f"{base}/describe", "rowTemplate": base + "/{ID}"},
    }


def _event_summary(one: ObjectType, version: str) -> dict[str, Any]:
    base = f"/services/data/{version}/sobjects/{one.event_name}"
    closed = dict.fromkeys(("queryable", "createable", "updateable", "deletable", "replicateable"), False)
    urls = {"sobject": base, "describe": f"{base}/describe", "eventSchema": f"{base}/eventSchema"}
    return {"name": one.event_name, "label": one.event_name, "keyPrefix": None, "custom": False, **closed, "urls": urls}


def _field(one: ObjectType, field: Field) -> dict[str, Any]:
    audit = field.name in AUDIT
    calculated = field.formula is not None
    return {
        "name": field.name,
        "label": field.name.removesuffix("__c").replace("_", " "),
        "type": field.kind,
        "soapType": SOAP_TYPES.get(field.kind, "xsd:string"),
        "length": field.length,
        "byteLength": field.length * 3,
        "precision": field.precision,
        "scale": field.scale,
        "digits": field.precision if field.kind == "int" else 0,
        "nillable": field.nillable,
        "createable": field.writable and not audit,
        "updateable": field.writable and not audit,
        "calculated": calculated,
        "calculatedFormula": "sandbox" if calculated else None,
        "compoundFieldName": field.compound,
        "custom": field.custom,
        "autoNumber": bool(field.auto_number),
        "encrypted": field.kind == "encryptedstring",
        "externalId": field.external_id,
        "idLookup": field.external_id or field.name == "Id",
        "unique": field.external_id,
        "filterable": field.filterable,
        "sortable": field.filterable,
        "groupable": field.filterable and not calculated,
        "aggregatable": field.filterable,
        "htmlFormatted": field.html,
        "extraTypeInfo": "richtextarea" if field.html else ("plaintextarea" if field.kind == "textarea" else None),
        "nameField": field.name == "Name",
        "namePointing": len(field.refers_to) > 1,
        "referenceTo": list(field.refers_to),
        "relationshipName": _relationship(field),
        "cascadeDelete": field.cascade,
        "restrictedPicklist": False,
        "picklistValues": [],
        "defaultedOnCreate": field.kind == "boolean" or audit,
        "deprecatedAndHidden": False,
        "permissionable": field.custom,
        "polymorphicForeignKey": len(field.refers_to) > 1,
    }


def _relationship(field: Field) -> str | None:
    if not field.refers_to:
        return None
    return f"{field.name[:-1]}r" if field.custom else field.name.removesuffix("Id")
