"""From the ways to log in to an access token."""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_cdc_provider.connectors.sources.salesforce.access import Access, Flow
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_id
from airflow_cdc_provider.connectors.sources.salesforce.refresh_tokens import stored_token
from airflow_cdc_provider.core.errors import CheckFailed, IdentityChanged, Problem, SourceUnavailable

if TYPE_CHECKING:
    from requests import Response, Session

TOKEN_PATH = "/services/oauth2/token"
JWT_VALID_S = 180
TIMEOUT_S = (10, 60)


@dataclass(frozen=True)
class AccessToken:
    """``instance_url`` without path. Ids in 18 characters. ``repr`` shows no secret."""

    access_token: str = field(repr=False)
    instance_url: str
    org_id: str


class Login:
    """Issues tokens. Where Salesforce rotates refresh tokens, the newest is kept before anything else happens."""

    def __init__(self, access: Access, session: Session) -> None:
        self.access = access
        self._session = session

    def token(self) -> AccessToken:
        """Raises CheckFailed where the login is refused (CON009) or a new refresh token cannot be kept (CON014),
        SourceUnavailable where the server fails, and IdentityChanged (SRC032) where the token is of another org than
        the connection names."""
        if self.access.flow is not Flow.REFRESH_TOKEN:
            return self._token(self._ask())
        with stored_token(self.access) as refresh:
            answer = self._ask(refresh.token)
            if (renewed := answer.get("refresh_token")) and renewed != refresh.token:
                refresh.replace(renewed)
        return self._token(answer)

    def _ask(self, refresh_token: str = "") -> dict[str, Any]:
        from requests import RequestException

        try:
            response = self._session.post(
                self.access.login_url + TOKEN_PATH,
                data=self._request(refresh_token),
                headers=self._headers(),
                timeout=TIMEOUT_S,
                proxies=dict(self.access.proxies),
                allow_redirects=False,
            )
        except RequestException as error:
            raise SourceUnavailable(
                self._problem("CON010", "the login server cannot be reached", type(error).__name__, "check the network")
            ) from error
        return self._answer(response)

    def _request(self, refresh_token: str) -> dict[str, str]:
        access = self.access
        form = {"grant_type": access.flow.value}
        match access.flow:
            case Flow.CLIENT_CREDENTIALS:
                return form
            case Flow.JWT:
                return form | {"assertion": self._assertion()}
            case Flow.REFRESH_TOKEN:
                secret = {"client_secret": access.consumer_secret} if access.consumer_secret else {}
                return form | {"client_id": access.consumer_key, "refresh_token": refresh_token} | secret

    def _headers(self) -> dict[str, str]:
        if self.access.flow is not Flow.CLIENT_CREDENTIALS:
            return {}
        pair = f"{self.access.consumer_key}:{self.access.consumer_secret}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode('ascii')}"}

    def _assertion(self) -> str:
        import jwt

        claims = {
            "iss": self.access.consumer_key,
            "sub": self.access.username,
            "aud": self.access.audience,
            "exp": int(time.time()) + JWT_VALID_S,
        }
        try:
            return jwt.encode(claims, self.access.private_key, algorithm="RS256")
        # What is wrong with a key comes in many classes, and their words may quote it.
        except Exception:
            raise CheckFailed(
                self._problem(
                    "CON012", "the private key cannot be used", "no RSA key in PEM form", "mend `private_key`"
                )
            ) from None

    def _answer(self, response: Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            answer = {}
        if response.status_code == 200 and isinstance(answer, dict) and answer.get("access_token"):
            return answer
        told = answer if isinstance(answer, dict) else {}
        found = f"HTTP {response.status_code} {told.get('error', '')}: {told.get('error_description', '')}".rstrip(": ")
        if response.status_code >= 500 or response.status_code == 429 or told.get("error") in TEMPORARY:
            raise SourceUnavailable(self._problem("CON013", "the login server failed", found, "try again"))
        raise CheckFailed(
            self._problem(
                "CON009",
                "Salesforce refuses the login",
                found,
                "mend the connection, or the app's policies; a JWT also needs right clocks and an app that is approved"
                " for the user",
            )
        )

    def _token(self, answer: dict[str, Any]) -> AccessToken:
        """The identity URL ends in the ids of org and user."""
        instance, identity = urlsplit(answer.get("instance_url", "")), urlsplit(answer.get("id", ""))
        ids = identity.path.rstrip("/").split("/")[-2:]
        if not instance.netloc or len(ids) != 2 or not all(map(is_id, ids)):
            raise CheckFailed(
                self._problem(
                    "CON009", "the login server does not say whose token it is", "no org id", "check login_url"
                )
            )
        org_id = full_id(ids[0])
        expected = self.access.org_id
        if expected and (not is_id(expected) or full_id(expected) != org_id):
            raise IdentityChanged(
                Problem(
                    "SRC032",
                    "the connection leads to another org than it names",
                    where=f"connection {self.access.connection_id}",
                    found=org_id,
                    allowed=expected,
                    do="mend `organization_id` or the login in the extra of the connection",
                )
            )
        return AccessToken(answer["access_token"], f"{instance.scheme}://{instance.netloc}", org_id)

    def _problem(self, code: str, what: str, found: str, do: str) -> Problem:
        where = f"{self.access.login_url}, connection {self.access.connection_id}"
        return Problem(code, what, where=where, found=found, do=do)


TEMPORARY = frozenset({"unknown_error", "server_error", "temporarily_unavailable"})
