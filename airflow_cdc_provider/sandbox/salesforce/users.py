"""Users and their permissions. Without View All, a user sees only the records they own; hidden fields do not exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, no_such_object
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row


class Access(StrEnum):
    NONE = "none"
    OWN = "own"
    ALL = "all"


@dataclass
class User:
    """``access`` per object, if it differs from ``access_to_all``; ``hidden`` are (object, field) pairs."""

    id: str
    username: str
    access_to_all: Access = Access.ALL
    access: dict[str, Access] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)

    def access_to(self, name: str) -> Access:
        return self.access.get(name, self.access_to_all)

    def fields(self, object_type: ObjectType) -> list[Field]:
        return [field for field in object_type.fields if (object_type.name, field.name) not in self.hidden]

    def require(self, object_type: ObjectType) -> None:
        """Raises ApiError INVALID_TYPE without access, as for an unknown object."""
        if self.access_to(object_type.name) is Access.NONE:
            raise no_such_object(object_type.name)

    def sees(self, object_type: ObjectType) -> Callable[[Row], bool]:
        """A predicate: whether a row is visible to this user."""
        if self.access_to(object_type.name) is Access.ALL or "OwnerId" not in object_type.slots:
            return lambda row: True
        owner, user = object_type.slots["OwnerId"], self.id
        return lambda row: row[owner] == user


def require_session(user: User | None) -> User:
    if user is None:
        raise ApiError(401, "INVALID_SESSION_ID", "Session expired or invalid")
    return user
