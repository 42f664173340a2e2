"""PostgreSQL behind a proxy that makes of it what a target needs of Redshift. ``python -P redshift.py PORT
POSTGRES_PORT STORE``: the last is a file with endpoint, key and secret of the store that it takes for S3.

It refuses what ``redshift_grammar`` does not have. Corrected: the driver's start-up parameters; serialization errors
are 1023; VARCHAR counts bytes and ignores blanks at the end in comparisons; VARBYTE and SUPER; DISTSTYLE, DISTKEY,
SORTKEY and BACKUP are checked and have no effect; keys are not enforced; COPY and UNLOAD of Parquet with a manifest;
the configuration parameters that PostgreSQL lacks. ``lose request``, ``lose answer`` and ``conflict`` are statements
that lose the next COMMIT, or its answer, or make it fail with 1023."""

from __future__ import annotations

import re
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from airflow_cdc_provider.sandbox.standins import redshift_grammar as grammar
from airflow_cdc_provider.sandbox.standins.redshift_files import Refused, file_rows, read_json, write_result
from airflow_cdc_provider.sandbox.standins.redshift_wire import (
    as_redshift,
    data_row,
    error_fields,
    message,
    receive,
    receive_message,
    row_description,
    send,
)

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
KEPT = ("user", "database", "application_name")
SASL = struct.pack("!I", 10)
ANSWERED = (3, 5, 10, 11)
"""Requests of authentication that the client answers."""

COLUMN = re.compile(r'("(?:[^"]|"")+") (.*)', re.DOTALL)
VARCHAR, VARBYTE = re.compile(r"VARCHAR\((\d+)\)"), re.compile(r"VARBYTE\((\d+)\)")
CREATE = re.compile(rf"CREATE TABLE (IF NOT EXISTS )?({grammar.NAME}) \((.*?)\)((?: BACKUP| DISTSTYLE|$).*)", re.DOTALL)
ADD = re.compile(rf"(ALTER TABLE {grammar.NAME} ADD COLUMN )(.*)", re.DOTALL)
COPY = re.compile(rf"COPY ({grammar.NAME}) FROM '(s3://[^']+)' ")
UNLOAD = re.compile(r"UNLOAD \(('(?:[^'\\]|''|\\.)*')\) TO '(s3://[^']+)' ", re.DOTALL)
OWN_PARAMETERS = re.compile(rf"SET ({'|'.join(sorted(grammar.PARAMETERS - grammar.OF_POSTGRES))}) ", re.IGNORECASE)
TABLE_TYPES = """SELECT format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


class Losing:
    """``what``: happens to the next COMMIT of any session."""

    what: ClassVar[str] = ""


class Session:
    """One connection. Clients wait for the end of an answer before they go on."""

    def __init__(self, client: socket.socket, port: int) -> None:
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", port))
        for one in (client, self.server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.statements: dict[bytes, str] = {}
        self.unloaded = 0

    def run(self) -> None:
        try:
            if self.start():
                while self.request():
                    pass
        except (ConnectionError, OSError):
            pass
        finally:
            self.client.close()
            self.server.close()

    def start(self) -> bool:
        while True:
            (length,) = struct.unpack("!I", receive(self.client, 4))
            body = receive(self.client, length - 4)
            (code,) = struct.unpack("!I", body[:4])
            if code not in (SSL, GSS):
                break
            self.client.sendall(b"N")
        if code == CANCEL:
            return False
        words = body[4:].split(b"\0")
        given = dict(zip(words[::2], words[1::2], strict=False))
        kept = b"".join(name.encode() + b"\0" + given[name.encode()] + b"\0" for name in KEPT if name.encode() in given)
        start = body[:4] + kept + b"\0"
        self.server.sendall(struct.pack("!I", len(start) + 4) + start)
        while True:
            kind, body = self.from_server()
            if b"driver_version" in given and body.startswith(SASL):
                body = body[:-1]  # the driver takes the end of the list for one more mechanism
            send(self.client, kind, body)
            if kind == b"R" and struct.unpack("!I", body[:4])[0] in ANSWERED:
                send(self.server, *receive_message(self.client))
            if kind in (b"Z", b"E"):
                return kind == b"Z"

    def request(self) -> bool:
        """All messages up to the one that asks for an answer."""
        batch: list[tuple[bytes, bytes]] = []
        while True:
            kind, body = receive_message(self.client)
            if kind == b"X":
                send(self.server, kind, body)
                return False
            batch.append((kind, body))
            if kind in (b"S", b"Q"):
                break
        try:
            return self.answer([self.rewritten(kind, body) for kind, body in batch])
        except Refused as refused:
            self.fail(*refused.args)
            return True

    def rewritten(self, kind: bytes, body: bytes) -> tuple[bytes, bytes]:
        if kind == b"P":
            name, text, rest = body.split(b"\0", 2)
            self.statements[name] = text.decode().strip()
            return kind, name + b"\0" + self.translated(self.statements[name]).encode() + b"\0" + rest
        if kind == b"Q":
            self.statements[b"Q"] = body[:-1].decode().strip()
            return kind, self.translated(self.statements[b"Q"]).encode() + b"\0"
        return kind, body

    def answer(self, batch: list[tuple[bytes, bytes]]) -> bool:
        executed = [self.statements[b"Q"] for kind, _ in batch if kind == b"Q"]
        executed += [self.statements.get(body.split(b"\0")[1], "") for kind, body in batch if kind == b"B"]
        lost = ""
        for statement in executed:
            if statement.upper() == "COMMIT" and Losing.what:
                lost, Losing.what = Losing.what, ""
                if lost == "conflict":
                    raise Refused("1023", "XX000", "Serializable isolation violation on table - 1")
                if lost == "request":
                    return False
            if copied := COPY.match(statement):
                self.copy(copied[1], copied[2])
            if unloaded := UNLOAD.match(statement):
                self.unload(grammar.unquoted(unloaded[1]), unloaded[2])
        self.server.sendall(b"".join(message(kind, body) for kind, body in batch))
        answers = [message(kind, as_redshift(body) if kind == b"E" else body) for kind, body in self.answers()]
        if lost != "answer":
            self.client.sendall(b"".join(answers))
        return lost != "answer"

    def translated(self, text: str) -> str:
        """The statement of PostgreSQL."""
        if text in ("lose request", "lose answer", "conflict"):
            Losing.what = text.removeprefix("lose ")
            return "SET cdc.lost TO 'armed'"
        try:
            why = grammar.refusal(re.sub(r"\s+", " ", text) if text.upper().startswith("SELECT") else text)
        except ValueError as error:
            why = str(error)
        if why:
            raise Refused(f"Redshift has not this statement: {why}: {text[:300]}", "42601", "")
        if OWN_PARAMETERS.match(text):
            return text.replace("SET ", "SET cdc.", 1)
        if text.startswith(("COPY ", "UNLOAD ")):
            return "SET cdc.done TO 'yes'"  # the work is done when it is executed
        if created := CREATE.fullmatch(text):
            columns = list(split(created[3]))
            check_layout(created[4], columns)
            kept = ", ".join(stored(column) for column in columns if not column.startswith("PRIMARY KEY"))
            return f"CREATE TABLE {created[1] or ''}{created[2]} ({kept})"
        if added := ADD.fullmatch(text):
            return added[1] + stored(added[2])
        text = re.sub(r"\bTO ROLE ", "TO ", text) if text.startswith("GRANT") else text
        text = text.replace("JSON_SERIALIZE(", "text_of_json(")  # PostgreSQL has its own, which reads no jsonb
        text = text.replace("pg_last_unload_count()", str(self.unloaded)).replace("'query_group'", "'cdc.query_group'")
        return VARBYTE.sub("bytea", re.sub(r"::SUPER\b", "::jsonb", text))

    def copy(self, table: str, url: str) -> None:
        kinds = [str(kind) for (kind,) in self.query(TABLE_TYPES.format(table))[1]]
        rows = [row for entry in read_json(url)["entries"] for row in file_rows(entry, kinds)]
        send(self.server, b"Q", f"COPY {table} FROM STDIN".encode() + b"\0")
        for kind, body in self.answers_until(b"G"):
            if kind == b"E":
                raise Refused(*error_fields(body))
        for row in rows:
            send(self.server, b"d", row)
        send(self.server, b"c", b"")
        for kind, body in self.answers():
            if kind == b"E":
                raise Refused(*error_fields(body))

    def unload(self, query: str, url: str) -> None:
        kinds, rows = self.query(self.translated(query))
        self.unloaded = write_result(url, kinds, rows)

    def query(self, text: str) -> tuple[list[tuple[str, int]], list[list[str | None]]]:
        """Names and types of the columns, and the rows as texts."""
        send(self.server, b"Q", text.encode() + b"\0")
        kinds: list[tuple[str, int]] = []
        rows: list[list[str | None]] = []
        failed: list[str] = []
        for kind, body in self.answers():
            if kind == b"T":
                kinds = list(row_description(body))
            if kind == b"D":
                rows.append(list(data_row(body)))
            if kind == b"E":
                failed = error_fields(body)
        if failed:
            raise Refused(*failed)
        return kinds, rows

    def fail(self, message: str, state: str, detail: str) -> None:
        """An error of the server, which ends the transaction, unless it has failed already."""
        values = ", ".join(
            f"{name} = {quoted(value)}"
            for name, value in (("ERRCODE", state), ("MESSAGE", message), ("DETAIL", detail))
            if value
        )
        send(self.server, b"Q", f"DO {quoted(f'BEGIN RAISE EXCEPTION USING {values}; END')}".encode() + b"\0")
        for kind, body in self.answers():
            if kind == b"E":
                fields = {"S": "ERROR", "C": state, "M": message, "D": detail}
                body = b"".join(name.encode() + text.encode() + b"\0" for name, text in fields.items() if text) + b"\0"
                send(self.client, kind, as_redshift(body))
            elif kind == b"Z":
                send(self.client, kind, body)

    def answers(self) -> Iterator[tuple[bytes, bytes]]:
        yield from self.answers_until(b"Z")

    def answers_until(self, last: bytes) -> Iterator[tuple[bytes, bytes]]:
        kind = b""
        while kind not in (last, b"Z"):
            kind, body = self.from_server()
            yield kind, body

    def from_server(self) -> tuple[bytes, bytes]:
        return receive_message(self.server)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def split(definitions: str) -> Iterator[str]:
    """At commas outside of parentheses and names."""
    start = depth = 0
    in_name = False
    for number, one in enumerate(definitions):
        in_name ^= one == '"'
        depth += 0 if in_name else {"(": 1, ")": -1}.get(one, 0)
        if one == "," and not depth and not in_name:
            yield definitions[start:number].strip()
            start = number + 1
    yield definitions[start:].strip()


def stored(definition: str) -> str:
    """A column of PostgreSQL: ``bpchar`` ignores blanks at the end in comparisons, and keeps them."""
    match = COLUMN.fullmatch(definition)
    assert match, definition
    name, kind = match[1], match[2].replace("SUPER", "jsonb")
    for pattern, other in ((VARCHAR, "bpchar"), (VARBYTE, "bytea")):
        kind = pattern.sub(partial(_limited, other, name), kind)
    return f"{name} {kind}"


def _limited(kind: str, name: str, match: re.Match[str]) -> str:
    return f"{kind} CHECK (octet_length({name}) <= {match[1]})"


def check_layout(tail: str, definitions: list[str]) -> None:
    kinds = {match[1]: match[2] for match in map(COLUMN.fullmatch, definitions) if match}
    for names in re.findall(r"(?:DISTKEY|SORTKEY) \((.*?)\)(?= |$)", tail):
        for name in split(names):
            if name not in kinds:
                raise Refused(f"no column {name} for a key", "42703", "")
            if kinds[name].startswith(("VARBYTE", "SUPER")):
                raise Refused(f"column {name} cannot be a key: {kinds[name]}", "0A000", "")


def main() -> None:
    port, postgres = map(int, sys.argv[1:3])
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=Session(client, postgres).run, daemon=True).start()


if __name__ == "__main__":
    main()
