"""CRM data for the demo and the tests: accounts, contacts and invoices, and a load generator. All follow from a seed.

Values include cases that are difficult to copy: line ends, quotes, the words NA and null, empty compounds, amounts with
cents, dates at midnight, person accounts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.sandbox.load import LoadGenerator
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.transactions import Transaction

CITIES = ("Ulm", "Århus", "São Paulo", "Köln", "NA", "東京", 'Quo"te')
INDUSTRIES = ("Energy", "Banking", "null", None, "Media")
REGIONS = ("EMEA", "EMEA;APAC", None, "AMER;APAC;EMEA")


@dataclass(frozen=True)
class Size:
    """Records per object."""

    accounts: int
    contacts: int
    invoices: int


DEMO = Size(accounts=20_000, contacts=30_000, invoices=10_000)
SMALL = Size(accounts=200, contacts=300, invoices=100)


def fill(org: OrgState, size: Size, seed: int = 1) -> None:
    """Create records without events."""
    chance = random.Random(seed)
    accounts = org.load("Account", [account(number, chance) for number in range(size.accounts)])
    org.load("Contact", [contact(number, chance, accounts) for number in range(size.contacts)])
    org.load("Invoice__c", [invoice(number, chance, accounts) for number in range(size.invoices)])


def account(number: int, chance: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "Name": f"Account {number}",
        "Industry": chance.choice(INDUSTRIES),
        "AnnualRevenue": chance.randrange(10**9),
        "NumberOfEmployees": chance.randrange(50_000),
        "Phone": f"+49 731 {number}",
        "Website": f"https://example.org/{number}",
        "ERP_Number__c": f"E-{number}",
        "Amount_Owed__c": chance.randrange(10**8) / 100,
        "Regions__c": chance.choice(REGIONS),
    }
    if number % 3:
        values |= {"BillingStreet": f"{number} Main Road\r\nGate 2", "BillingCity": chance.choice(CITIES)}
        values |= {"BillingCountry": "Germany", "BillingCountryCode": "DE"}
    if number % 5 == 0:
        values |= {"ShippingLatitude": number / 1000 % 90, "ShippingLongitude": -number / 1000 % 180}
    if number % 10 == 0:
        values["Description"] = description(number)
    return values


def contact(number: int, chance: random.Random, accounts: list[str]) -> dict[str, Any]:
    return {
        "AccountId": chance.choice(accounts) if accounts and number % 8 else None,
        "FirstName": f"First {number}" if number % 4 else None,
        "LastName": f"O'Last {number}",
        "Email": f"c{number}@example.org",
        "Birthdate": f"{1950 + number % 60}-{1 + number % 12:02}-{1 + number % 28:02}" if number % 3 else None,
        "MailingCity": chance.choice(CITIES),
        "DoNotCall": number % 2 == 0,
        "LeadSource": "Web" if number % 2 else None,
    }


def invoice(number: int, chance: random.Random, accounts: list[str]) -> dict[str, Any]:
    return {
        "Account__c": chance.choice(accounts) if accounts else None,
        "Number__c": f"N-{number}",
        "Amount__c": chance.randrange(10**9) / 100,
        "Quantity__c": chance.randrange(10**9) / 10**6,
        "Discount__c": number % 50 / 4,
        "Issued__c": f"2026-{1 + number % 12:02}-{1 + number % 28:02}",
        "Due__c": f"2026-{1 + number % 12:02}-28T23:59:59Z",
        "Call_At__c": f"{number % 24:02}:30:00.250",
        "Paid__c": number % 3 == 0,
        "Status__c": ("Draft", "Sent", "Paid")[number % 3],
        "Tags__c": "a;b" if number % 2 else None,
        "Terms__c": f"line one\nline two, {number}",
        "Letter__c": f"<p>Dear &amp; near, {number}</p>",
        "Place__Latitude__s": number / 7 % 90,
        "Place__Longitude__s": number / 11 % 180,
    }


def description(number: int, changed: int = -1) -> str:
    """A text that is long enough for a diff; ``changed`` is the line that differs."""
    lines = [f"{number}: line {line} of the description of this account" for line in range(40)]
    if changed >= 0:
        lines[changed] = f"{number}: a changed line"
    return "\r\n".join(lines)


class Load(LoadGenerator):
    """A writer that changes the org. ``done`` counts statements."""

    def __init__(self, org: OrgState, seed: int = 1, pause_s: float = 0.02) -> None:
        super().__init__(seed, pause_s)
        self.org = org
        self._next = 1_000_000 * seed

    def session(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(self.step)

    def step(self) -> None:
        """One transaction."""
        with self.org.transaction() as transaction:
            for kind in self._random.choices(KINDS, k=self._random.randint(1, 4)):
                if self._run_statement(kind, transaction):
                    self.done[kind] += 1

    def _run_statement(self, kind: str, transaction: Transaction) -> bool:
        """False if the record is deleted or locked."""
        chance = self._random
        self._next += 1
        try:
            match kind:
                case "insert":
                    transaction.insert("Account", account(self._next, chance))
                case "person":
                    transaction.insert("Account", {"FirstName": "Ada", "LastName": f"Person {self._next}"})
                case "invoice":
                    transaction.insert("Invoice__c", invoice(self._next, chance, []))
                case "update":
                    transaction.update("Account", self._any("Account"), {"AnnualRevenue": chance.randrange(10**9)})
                case "mass update":
                    keys = [self._any("Contact") for _ in range(20)]
                    transaction.update_many("Contact", dict.fromkeys(keys), {"LeadSource": f"Campaign {self._next}"})
                case "nulls":
                    transaction.update("Account", self._any("Account"), {"BillingCity": None, "Industry": None})
                case "text":
                    table = self.org.store.table("Account")
                    # Every tenth account has a description; the first id belongs to number 0.
                    number = chance.randrange(0, table.last_number, 10)
                    changed = description(number, chance.randrange(40))
                    transaction.update("Account", table.id_of(number + 1), {"Description": changed})
                case "geocode":
                    point = {"ShippingLatitude": chance.random() * 90, "ShippingLongitude": chance.random() * 90}
                    transaction.update("Account", self._any("Account"), point, system=True)
                case "pay":
                    transaction.update("Invoice__c", self._any("Invoice__c"), {"Paid__c": True, "Status__c": "Paid"})
                case "delete":
                    transaction.delete("Contact", self._any("Contact"))
        except ApiError as error:
            if error.code not in ("ENTITY_IS_DELETED", "NOT_FOUND", "UNABLE_TO_LOCK_ROW"):
                raise
            return False
        return True

    def _any(self, name: str) -> str:
        table = self.org.store.table(name)
        return table.id_of(self._random.randint(1, table.last_number))


KINDS = ("insert", "person", "invoice", "update", "mass update", "nulls", "text", "geocode", "pay", "delete")
