"""A CRM for the demo and the tests: accounts, their contacts, their invoices, and somebody who changes them.

Everything follows from a seed. Values hold what copies usually get wrong: line ends, quotes, the words NA and null,
empty compounds, amounts to the cent, midnight dates, person accounts.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

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
    """Records without events, as an org that was there before anybody listened."""
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
    """Long enough for a diff; ``changed`` is the line that differs."""
    lines = [f"{number}: line {line} of what there is to say about it" for line in range(40)]
    if changed >= 0:
        lines[changed] = f"{number}: changed, once more"
    return "\r\n".join(lines)


@dataclass
class Load:
    """A writer that changes the org in small transactions, from a seed, until told to stop.

    ``done`` counts statements by kind. One ``step`` is one transaction. ``pause_s`` lies between two of them.
    """

    org: OrgState
    seed: int = 1
    pause_s: float = 0.02
    done: Counter[str] = field(default_factory=lambda: Counter())

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._next = 1_000_000 * self.seed

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def __enter__(self) -> Load:
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread
        self._thread.join()
        if self._error:
            raise self._error

    def step(self) -> None:
        with self.org.transaction() as transaction:
            for kind in self._random.choices(KINDS, k=self._random.randint(1, 4)):
                if self._one(kind, transaction):
                    self.done[kind] += 1

    def _loop(self) -> None:
        try:
            while not self._stop.wait(self.pause_s):
                self.step()
        except BaseException as error:
            self._error = error

    def _one(self, kind: str, transaction: Transaction) -> bool:
        """Whether it could be done: a record may be gone by now."""
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
                    # Every tenth one was filled with a description; the first id belongs to number 0.
                    number = chance.randrange(0, table.last_number, 10)
                    changed = description(number, chance.randrange(40))
                    transaction.update("Account", table.id_of(number + 1), {"Description": changed})
                case "geocode":
                    place = {"ShippingLatitude": chance.random() * 90, "ShippingLongitude": chance.random() * 90}
                    transaction.update("Account", self._any("Account"), place, system=True)
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
