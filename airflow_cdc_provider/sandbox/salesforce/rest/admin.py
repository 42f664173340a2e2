"""Admin commands: POST /admin/<command> with a JSON object. The package's docstring lists them.

They need no token: every client of the port may use them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.sandbox.salesforce import fields
from airflow_cdc_provider.sandbox.salesforce.channels import STANDARD, Member
from airflow_cdc_provider.sandbox.salesforce.clock import moment_text
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, HttpFault, RpcFault
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.transactions import API_ORIGIN, Transaction
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

Body = Mapping[str, Any]
KINDS: Mapping[str, Callable[..., Field]] = {
    "text": fields.text,
    "area": fields.area,
    "picklist": fields.picklist,
    "multipicklist": fields.multipicklist,
    "boolean": fields.boolean,
    "integer": fields.integer,
    "double": fields.double,
    "currency": fields.currency,
    "percent": fields.percent,
    "date": fields.date,
    "moment": fields.moment,
    "time": fields.time_of_day,
    "email": fields.email,
    "reference": fields.reference,
}


def command(org: OrgState, request: Request, name: str) -> Response:
    if name not in COMMANDS:
        raise ApiError(404, "NOT_FOUND", f"unknown command {name}; the commands are {', '.join(sorted(COMMANDS))}")
    try:
        return json_response(COMMANDS[name](org, request.fields()) or {})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApiError(400, "BAD_COMMAND", f"{name}: {type(error).__name__}: {error}") from error


def org_info(org: OrgState, request: Request) -> Response:
    counts = {name: len(table.rows) for name, table in org.store.tables.items()}
    return json_response(
        {
            "org_id": org.org_id,
            "client_id": org.client_id,
            "client_secret": org.client_secret,
            "username": org.integration.username,
            "now": moment_text(org.clock.now_ms()),
            "rows": counts,
            "commits": org.ledger.last,
            "open_transactions": sorted(org.transactions),
            "published": org.bus.published,
            "delivered": org.bus.delivered,
            "requests": org.requests,
            "faults_hit": org.faults.hits,
        }
    )


def commits(org: OrgState, request: Request) -> Response:
    """JSON lines, one per commit after the number ``after``."""
    after = request.number("after", 0)
    lines = [
        {
            "number": one.number,
            "transaction_key": one.transaction_key,
            "at": moment_text(one.at_ms),
            "changes": [[change.object, change.id, change.row is not None] for change in one.changes],
        }
        for one in org.ledger.commits[after:]
    ]
    return _json_lines(lines)


def state(org: OrgState, request: Request, name: str) -> Response:
    """JSON lines, one per record, after commit ``number``; ``everything=true``: with deleted and archived records."""
    number = request.number("number", org.ledger.last)
    everything = request.query.get("everything") == "true"
    records = org.ledger.state(name, number, everything, org.clock.second())
    return _json_lines(records.values())


def _json_lines(lines: Iterable[Mapping[str, Any]]) -> Response:
    body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return Response(200, body.encode(), "application/x-ndjson")


def _clock(org: OrgState, body: Body) -> Body:
    if "advance" in body:
        org.clock.advance(float(body["advance"]))
    if body.get("freeze"):
        org.clock.freeze()
    if body.get("run"):
        org.clock.run()
    return {"now": moment_text(org.clock.now_ms())}


def _user(org: OrgState, username: str | None) -> User:
    if username is None:
        return org.writer
    return next(user for user in org.users.values() if user.username == username)


def _begin(org: OrgState, body: Body) -> Body:
    return {"transaction": _new(org, body).key}


def _new(org: OrgState, body: Body) -> Transaction:
    return org.transaction(
        _user(org, body.get("user")),
        body.get("origin", API_ORIGIN),
        bool(body.get("coalesce", True)),
        bool(body.get("as_gap", False)),
    )


def _commit(org: OrgState, body: Body) -> Body:
    org.transactions[body["transaction"]].commit()
    return {"commits": org.ledger.last}


def _rollback(org: OrgState, body: Body) -> None:
    org.transactions[body["transaction"]].rollback()


def _statement(run: Callable[[Transaction, Body], Any]) -> Callable[[OrgState, Body], Body]:
    """Run it in the transaction ``transaction``, without this key in a new one."""

    def statement(org: OrgState, body: Body) -> Body:
        if "transaction" in body:
            return {"result": run(org.transactions[body["transaction"]], body)}
        with _new(org, body) as transaction:
            return {"result": run(transaction, body)}

    return statement


def _insert(transaction: Transaction, body: Body) -> list[str]:
    return [transaction.insert(body["object"], values, body.get("audit")) for values in body["records"]]


def _update(transaction: Transaction, body: Body) -> None:
    transaction.update_many(body["object"], body["ids"], body["values"], bool(body.get("system", False)))


def _merge(transaction: Transaction, body: Body) -> None:
    transaction.merge(body["object"], body["winner"], *body["losers"], values=body.get("values"))


def _field(org: OrgState, body: Body) -> None:
    """Add or replace a field; ``convert``: with a gap event for the whole object."""
    options = dict(body["field"])
    field = KINDS[options.pop("kind")](options.pop("name"), *options.pop("refers_to", []), **options)
    (org.convert_field if body.get("convert") else org.change_field)(body["object"], field)


def _faults(org: OrgState, body: Body) -> Body:
    if body.get("clear"):
        org.faults.clear()
    org.faults.http += [HttpFault(**one) for one in body.get("http", [])]
    org.faults.rpc += [RpcFault(**one) for one in body.get("rpc", [])]
    org.faults.bulk += [BulkFault(**one) for one in body.get("bulk", [])]
    for name in ("truncate_csv", "lose_events", "expire_tokens_after"):
        if name in body:
            setattr(org.faults, name, body[name])
    return {"hits": org.faults.hits}


def _permissions(org: OrgState, body: Body) -> None:
    """Change permissions of ``username``, by default the integration user. Missing keys change nothing."""
    user = _user(org, body.get("username", org.integration.username))
    user.access_to_all = Access(body.get("access_to_all", user.access_to_all))
    user.access = {name: Access(one) for name, one in body.get("access", user.access).items()}
    user.hidden = {(entity, field) for entity, field in body.get("hidden", user.hidden)}


def _bus(org: OrgState, body: Body) -> None:
    org.bus.allocation = body.get("allocation", org.bus.allocation)
    org.bus.retention_s = body.get("retention_s", org.bus.retention_s)
    if body.get("reset"):
        org.bus.reset()
    if body.get("repeat"):
        org.bus.repeat(body["repeat"])


def _bulk(org: OrgState, body: Body) -> None:
    org.bulk.piece_rows = body.get("piece_rows", org.bulk.piece_rows)
    org.bulk.page_rows = body.get("page_rows", org.bulk.page_rows)
    org.bulk.scientific = bool(body.get("scientific", org.bulk.scientific))
    if body.get("release"):
        org.bulk.release()


def _channel(org: OrgState, body: Body) -> None:
    """``name`` is ChangeEvents or ends in __chn; without ``members`` the channel is removed."""
    if body.get("members") is None:
        del org.channels.custom[body["name"]]
        return
    members = [Member(**{**one, "enriched": tuple(one.get("enriched", ()))}) for one in body["members"]]
    if body["name"] == STANDARD:
        org.channels.selected = members
    else:
        org.channels.custom[body["name"]] = members


def _rules(org: OrgState, body: Body) -> None:
    org.rules = replace(org.rules, **body)


def _limits(org: OrgState, body: Body) -> None:
    org.request_limit = body.get("request_limit", org.request_limit)
    org.requests = body.get("requests", org.requests)


COMMANDS: Mapping[str, Callable[[OrgState, Body], Body | None]] = {
    "clock": _clock,
    "begin": _begin,
    "commit": _commit,
    "rollback": _rollback,
    "insert": _statement(_insert),
    "update": _statement(_update),
    "delete": _statement(lambda transaction, body: transaction.delete(body["object"], *body["ids"])),
    "undelete": _statement(lambda transaction, body: transaction.undelete(body["object"], *body["ids"])),
    "purge": _statement(lambda transaction, body: transaction.purge(body["object"], *body["ids"])),
    "merge": _statement(_merge),
    "load": lambda org, body: {"ids": org.load(body["object"], body["records"])},
    "gap": lambda org, body: org.gap(body["object"], body["ids"], body.get("kind", "GAP_UPDATE")),
    "archive": lambda org, body: org.archive(body["object"], body["ids"]),
    "empty_bin": lambda org, body: org.empty_bin(),
    "field": _field,
    "drop_field": lambda org, body: org.drop_field(body["object"], body["name"]),
    "refuse_bulk": lambda org, body: org.store.refuse_bulk(body["object"]),
    "faults": _faults,
    "expire_tokens": lambda org, body: org.tokens.expire(),
    "expire_cursors": lambda org, body: org.cursors.expire(),
    "permissions": _permissions,
    "bus": _bus,
    "bulk": _bulk,
    "channel": _channel,
    "rules": _rules,
    "limits": _limits,
    "migrate": lambda org, body: org.migrate(),
    "refresh": lambda org, body: org.refresh(),
}
