"""The errors of the org, which become an HTTP response or one of the errors of a record."""

from __future__ import annotations

from collections.abc import Sequence


class ApiError(Exception):
    """``status`` is the HTTP status, ``code`` the org's error code, ``fields`` the fields with the error."""

    def __init__(self, status: int, code: str, message: str, fields: Sequence[str] = ()) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message, self.fields = status, code, message, tuple(fields)


def no_such_field(name: str, object_name: str) -> ApiError:
    return ApiError(400, "INVALID_FIELD", f"No such column '{name}' on sobject of type {object_name}", [name])


def no_such_object(name: str) -> ApiError:
    return ApiError(400, "INVALID_TYPE", f"sObject type '{name}' is not supported.")


def not_found() -> ApiError:
    return ApiError(404, "NOT_FOUND", "The requested resource does not exist")


def is_deleted() -> ApiError:
    return ApiError(404, "ENTITY_IS_DELETED", "entity is deleted")
