"""The objects of a new org. The fields of Account have the order of a real org with API 66."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds
from airflow_cdc_provider.sandbox.salesforce.fields import (
    Field,
    address,
    any_value,
    area,
    blob,
    boolean,
    currency,
    date,
    double,
    email,
    encrypted,
    integer,
    location,
    moment,
    multipicklist,
    percent,
    person_name,
    phone,
    picklist,
    reference,
    text,
    time_of_day,
    url,
)
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, object_type

# Fields of a person account: field of the account → field of its contact.
PERSON_FIELDS = {
    "Salutation": "Salutation",
    "FirstName": "FirstName",
    "LastName": "LastName",
    "PersonEmail": "Email",
    "PersonTitle": "Title",
    "PersonBirthdate": "Birthdate",
    "Loyalty__pc": "Loyalty__c",
}


def catalog() -> list[ObjectType]:
    ordinary = [_organization(), _user(), _account(), _contact(), _invoice(), _task(), _attachment()]
    return [*ordinary, _history(), _login_history(), _user_preference(), _activity_history(), _task_status()]


def custom_object(name: str, prefix: str, fields: Sequence[Field]) -> ObjectType:
    owner = reference("OwnerId", "User", nillable=False)
    return object_type(name, prefix, [*_record(), owner, *_audit(), *fields])


def _record() -> list[Field]:
    """The fields of every ordinary object that events do not contain."""
    return [
        Field("Id", "id", None, length=18, nillable=False, writable=False),
        Field("IsDeleted", "boolean", None, nillable=False, writable=False),
        Field("SystemModstamp", "datetime", None, nillable=False, writable=False),
    ]


def _audit() -> list[Field]:
    created = Field("CreatedDate", "datetime", "DateTime", nillable=False, writable=False, event_role="CreatedDate")
    by = reference("CreatedById", "User", nillable=False, writable=False)
    modified = moment("LastModifiedDate", nillable=False, writable=False)
    return [created, by, modified, reference("LastModifiedById", "User", nillable=False, writable=False)]


def _account() -> ObjectType:
    name = person_name("Switchable_PersonName")
    name[0] = Field("Name", "string", "Switchable_PersonName", length=255, members=name[0].members, nillable=False)
    fields = [
        *_record(),
        reference("MasterRecordId", "Account", writable=False).silent(),
        *name,
        picklist("Type"),
        reference("RecordTypeId", "RecordType"),
        reference("ParentId", "Account"),
        *address("Billing", codes=True),
        *address("Shipping", codes=True),
        phone("Phone"),
        phone("Fax"),
        text("AccountNumber", 40),
        url("Website"),
        text("Sic", 20),
        picklist("Industry"),
        currency("AnnualRevenue", 18, 0),
        integer("NumberOfEmployees"),
        picklist("Ownership"),
        text("TickerSymbol", 20),
        area("Description"),
        picklist("Rating"),
        text("Site", 80),
        reference("OwnerId", "User", nillable=False),
        *_audit(),
        boolean("IsPersonAccount", writable=False).silent(),
        reference("PersonContactId", "Contact", writable=False),
        email("PersonEmail"),
        text("PersonTitle", 80),
        date("PersonBirthdate"),
        date("LastActivityDate", writable=False).silent(),
        text("Loyalty__pc", 20),
        text("ERP_Number__c", 30, external_id=True),
        currency("Amount_Owed__c", 18, 2),
        multipicklist("Regions__c"),
        Field("Age_Days__c", "double", "Double", precision=18, scale=0, formula=_age_days, writable=False),
    ]
    return object_type("Account", "001", fields)


def _contact() -> ObjectType:
    fields = [
        *_record(),
        reference("MasterRecordId", "Contact", writable=False).silent(),
        reference("AccountId", "Account", cascade=True),
        boolean("IsPersonAccount", writable=False),
        *person_name(),
        *address("Other", codes=True),
        *address("Mailing", codes=True),
        phone("Phone"),
        phone("MobilePhone"),
        reference("ReportsToId", "Contact"),
        email("Email"),
        text("Title", 128),
        text("Department", 80),
        picklist("LeadSource"),
        date("Birthdate"),
        area("Description"),
        reference("OwnerId", "User", nillable=False),
        boolean("DoNotCall"),
        *_audit(),
        text("Loyalty__c", 20),
        text("Languages__c", 100),
    ]
    return object_type("Contact", "003", fields)


def _invoice() -> ObjectType:
    """A custom object with a field of every kind and an auto number as its name."""
    fields = [
        *_record(),
        reference("OwnerId", "User", nillable=False),
        text("Name", 80, auto_number="INV-{0:06}", nillable=False, writable=False),
        *_audit(),
        reference("Account__c", "Account", cascade=True),
        text("Number__c", 40, external_id=True),
        currency("Amount__c", 16, 2),
        double("Quantity__c", 18, 6),
        double("Weight__c", 18, 0),
        percent("Discount__c", 5, 2),
        date("Issued__c"),
        moment("Due__c"),
        time_of_day("Call_At__c"),
        boolean("Paid__c"),
        picklist("Status__c"),
        multipicklist("Tags__c"),
        email("Bill_To__c"),
        phone("Phone__c"),
        url("Link__c"),
        area("Terms__c"),
        area("Letter__c", 131_072, html=True),
        area("Note__c", 255),
        encrypted("Iban__c"),
        *location("Place__c"),
        Field("Net__c", "currency", "Currency", precision=18, scale=2, formula=_net, writable=False),
    ]
    return object_type("Invoice__c", "a00", fields)


def _task() -> ObjectType:
    """Old tasks are archived: excluded from queries, but not deleted."""
    archived = boolean("IsArchived", writable=False).silent()
    fields = [*_record(), archived, reference("WhoId", "Contact"), reference("WhatId", "Account")]
    fields += [text("Subject"), date("ActivityDate"), picklist("Status"), area("Description")]
    return object_type("Task", "00T", [*fields, reference("OwnerId", "User", nillable=False), *_audit()])


def _organization() -> ObjectType:
    """One row, whose id is the org id."""
    identity, _, modstamp = _record()
    fields = [identity, modstamp, text("Name", 80), text("InstanceName", 40), boolean("IsSandbox"), *_audit()]
    return object_type("Organization", "00D", fields, replicateable=False)


def _user() -> ObjectType:
    identity, _, modstamp = _record()
    fields = [identity, modstamp, text("Username", 80), *person_name(), email("Email"), boolean("IsActive"), *_audit()]
    return object_type("User", "005", fields)


def _attachment() -> ObjectType:
    """It has a blob, which Bulk API and events do not support."""
    fields = [*_record(), reference("ParentId", "Account", "Contact"), text("Name"), blob("Body"), *_audit()]
    return object_type("Attachment", "00P", fields)


def _history() -> ObjectType:
    """Rows never change, so there is no SystemModstamp. A value has the type of the field that changed."""
    identity, deleted, _ = _record()
    fields = [identity, deleted, reference("AccountId", "Account"), picklist("Field"), text("DataType")]
    fields += [any_value("OldValue"), any_value("NewValue"), *_audit()[:2]]
    return object_type("AccountHistory", "017", fields, replicateable=False)


def _login_history() -> ObjectType:
    """The only time field is LoginTime."""
    identity, _, _ = _record()
    fields = [identity, reference("UserId", "User"), moment("LoginTime"), text("SourceIp")]
    return object_type("LoginHistory", "0Ya", fields, replicateable=False)


def _user_preference() -> ObjectType:
    """There is no time field."""
    identity, _, _ = _record()
    fields = [identity, reference("UserId", "User"), picklist("Preference"), text("Value")]
    return object_type("UserPreference", "03u", fields, replicateable=False)


def _activity_history() -> ObjectType:
    """It can only be read through a parent object."""
    identity, _, modstamp = _record()
    fields = [identity, modstamp, text("Subject")]
    return object_type("ActivityHistory", "0AH", fields, queryable=False, replicateable=False)


def _task_status() -> ObjectType:
    identity, _, modstamp = _record()
    fields = [identity, modstamp, text("MasterLabel"), boolean("IsClosed"), *_audit()]
    return object_type("TaskStatus", "01J", fields, bulk=False, replicateable=False)


def _age_days(values: Mapping[str, Any], now: str) -> float:
    """The value changes with time, without an update."""
    return float((milliseconds(now) - milliseconds(values["CreatedDate"])) // 86_400_000)


def _net(values: Mapping[str, Any], now: str) -> float | None:
    amount, discount = values["Amount__c"], values["Discount__c"]
    return None if amount is None else round(float(amount) * (1 - (discount or 0.0) / 100), 2)
