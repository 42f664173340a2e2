"""Who may use the stand-in: everybody, or a service account, by its key."""

from __future__ import annotations

import secrets
from typing import Any

import jwt

LIFETIME_S = 3600


class Tokens:
    """``public_key``: of the service account, in PEM. Empty: every request is allowed."""

    def __init__(self, public_key: str) -> None:
        self._public_key = public_key
        self._issued: set[str] = set()

    def allows(self, authorization: str) -> bool:
        token = authorization.removeprefix("Bearer ")
        return not self._public_key or token in self._issued or self.is_signed(token)

    def is_signed(self, token: str) -> bool:
        """Whether the account has signed the token, for any audience."""
        try:
            jwt.decode(token, self._public_key, algorithms=["RS256"], options={"verify_aud": False})
        except jwt.InvalidTokenError:
            return False
        return True

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        """A token for a signed assertion (RFC 7523); None if the signature is not the account's."""
        return self.issue() if self.is_signed(form.get("assertion", "")) else None

    def issue(self) -> dict[str, Any]:
        """As the metadata server of a machine does for its service account."""
        token = f"ya29.{secrets.token_urlsafe(24)}"
        self._issued.add(token)
        return {"access_token": token, "expires_in": LIFETIME_S, "token_type": "Bearer"}
