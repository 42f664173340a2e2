"""The fields of an object: their type in describe and in change events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Formula = Callable[[Mapping[str, Any], str], Any]


@dataclass(frozen=True)
class Field:
    """``kind`` is the type in describe, ``event_type`` the one in an event schema's ``doc``; None: events lack it.

    A compound field has ``members`` (member name, field name); its parts name it in ``compound``. Of the compound
    fields, only a person's full name is stored.
    A formula gets the record's values by name and the current second; it is computed at each read.
    """

    name: str
    kind: str
    event_type: str | None = "Text"
    length: int = 0
    precision: int = 0
    scale: int = 0
    nillable: bool = True
    writable: bool = True
    refers_to: tuple[str, ...] = ()
    cascade: bool = False
    compound: str | None = None
    members: tuple[tuple[str, str], ...] = ()
    formula: Formula | None = None
    external_id: bool = False
    auto_number: str = ""
    html: bool = False
    can_filter: bool = True
    event_role: str = "Data"

    def silent(self) -> Field:
        """The same field, left out of events."""
        return replace(self, event_type=None)

    @property
    def custom(self) -> bool:
        return self.name.endswith(("__c", "__s", "__pc"))

    @property
    def stored(self) -> bool:
        return self.formula is None and self.kind not in ("address", "location")

    @property
    def filterable(self) -> bool:
        unfiltered = ("address", "location", "base64", "encryptedstring", "anyType")
        return self.can_filter and self.kind not in unfiltered and not self.long_text

    @property
    def long_text(self) -> bool:
        return self.kind == "textarea" and self.length > 255


def text(name: str, length: int = 255, event_type: str = "Text", **more: Any) -> Field:
    return Field(name, "string", event_type, length=length, **more)


def area(name: str, length: int = 32_000, html: bool = False, **more: Any) -> Field:
    event_type = "HtmlStringPlusClob" if html else "StringPlusClob"
    return Field(name, "textarea", event_type, length=length, html=html, **more)


def picklist(name: str, **more: Any) -> Field:
    return Field(name, "picklist", "DynamicEnum", length=255, **more)


def multipicklist(name: str, **more: Any) -> Field:
    return Field(name, "multipicklist", "MultiEnum", length=4099, **more)


def boolean(name: str, **more: Any) -> Field:
    return Field(name, "boolean", "Boolean", nillable=False, **more)


def integer(name: str, **more: Any) -> Field:
    return Field(name, "int", "Integer", precision=8, **more)


def double(name: str, precision: int, scale: int, **more: Any) -> Field:
    return Field(name, "double", "Double", precision=precision, scale=scale, **more)


def currency(name: str, precision: int = 18, scale: int = 2, **more: Any) -> Field:
    return Field(name, "currency", "Currency", precision=precision, scale=scale, **more)


def percent(name: str, precision: int = 5, scale: int = 2, **more: Any) -> Field:
    return Field(name, "percent", "Percent", precision=precision, scale=scale, **more)


def date(name: str, **more: Any) -> Field:
    return Field(name, "date", "DateOnly", **more)


def moment(name: str, **more: Any) -> Field:
    return Field(name, "datetime", "DateTime", **more)


def time_of_day(name: str, **more: Any) -> Field:
    return Field(name, "time", "TimeOnly", **more)


def email(name: str, **more: Any) -> Field:
    return Field(name, "email", "Email", length=80, **more)


def phone(name: str, **more: Any) -> Field:
    return Field(name, "phone", "Phone", length=40, **more)


def url(name: str, **more: Any) -> Field:
    return Field(name, "url", "Url", length=255, **more)


def encrypted(name: str, length: int = 175, **more: Any) -> Field:
    return Field(name, "encryptedstring", "EncryptedText", length=length, **more)


def any_value(name: str, **more: Any) -> Field:
    """A value of whatever type: that of the field whose history it is."""
    return Field(name, "anyType", None, length=255, **more)


def blob(name: str, **more: Any) -> Field:
    return Field(name, "base64", None, **more)


def reference(name: str, *objects: str, **more: Any) -> Field:
    return Field(name, "reference", "EntityId", length=18, refers_to=objects, event_role="ForeignKey", **more)


ADDRESS = ("Street", "City", "State", "PostalCode", "Country")
ADDRESS_CODES = ("StateCode", "CountryCode")


def address(prefix: str, codes: bool = False) -> list[Field]:
    """``prefix`` + Address and its parts. ``codes``: with the codes of state and country picklists."""
    whole = f"{prefix}Address"
    names = (*ADDRESS, *(ADDRESS_CODES if codes else ()))
    parts = [Field(prefix + part, "string", length=255, compound=whole) for part in names]
    parts[0] = Field(f"{prefix}Street", "textarea", length=255, compound=whole)
    parts += [_degrees(prefix + part, whole) for part in ("Latitude", "Longitude")]
    parts.append(Field(f"{prefix}GeocodeAccuracy", "picklist", length=40, compound=whole))
    members = tuple((part.name.removeprefix(prefix), part.name) for part in parts)
    return [Field(whole, "address", "Address", members=members, writable=False), *parts]


def location(name: str) -> list[Field]:
    """A custom geolocation ``Name__c`` and its two parts ``Name__Latitude__s``, ``Name__Longitude__s``."""
    stem = name.removesuffix("__c")
    parts = [_degrees(f"{stem}__{part}__s", name) for part in ("Latitude", "Longitude")]
    members = (("Latitude", parts[0].name), ("Longitude", parts[1].name))
    return [Field(name, "location", "Location", members=members, writable=False), *parts]


def person_name(event_type: str = "PersonName") -> list[Field]:
    """``Name``, which the org computes, and its parts."""
    members = (("Salutation", "Salutation"), ("FirstName", "FirstName"), ("LastName", "LastName"))
    whole = Field("Name", "string", event_type, length=121, members=members, writable=False)
    parts = [Field("Salutation", "picklist", length=40, compound="Name")]
    parts.append(Field("FirstName", "string", length=40, compound="Name"))
    parts.append(Field("LastName", "string", length=80, compound="Name", nillable=event_type != "PersonName"))
    return [whole, *parts]


def _degrees(name: str, compound: str) -> Field:
    return Field(name, "double", "Double", precision=18, scale=15, compound=compound)
