"""A small shop database for the demo and the tests: four tables with data that is difficult to copy.

`customers` has jsonb and wide text that PostgreSQL stores out of line, `orders` an enum and an array, `order_lines` a
compound key and a column to exclude, `page_views` no key and equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from string import Template
from typing import Any, LiteralString

import psycopg

from airflow_cdc_provider.sandbox.load import LoadGenerator

SCHEMA = """
create type order_status as enum ('new', 'paid', 'shipped', 'returned');
create table customers (
    id bigint primary key,
    name text not null,
    email text,
    profile jsonb not null,
    notes text,
    balance numeric(12,2) not null default 0,
    active boolean not null default true,
    created_at timestamptz not null,
    updated_at timestamp
);
alter table customers alter column notes set storage external;
create table orders (
    id bigint primary key,
    customer_id bigint not null,
    status order_status not null,
    total numeric(12,2) not null,
    rate double precision,
    placed_at timestamptz not null,
    ship_on date,
    tags text[]
);
create table order_lines (
    order_id bigint not null,
    line_no smallint not null,
    sku text not null,
    quantity integer not null,
    price numeric(10,2) not null,
    discount numeric,
    weight real,
    internal_note text,
    primary key (order_id, line_no)
);
create table page_views (
    viewed_at timestamptz not null,
    customer_id bigint,
    path text not null,
    milliseconds integer
);
alter table page_views replica identity full;
"""

FILL = """
insert into customers
select n, 'Customer ' || n, case when n % 7 > 0 then 'c' || n || '@example.org' end,
       jsonb_build_object('city', 'City ' || n % 97, 'score', n % 1000 / 8.0, 'visits', array[n % 5, n % 11]),
       case when n % 10 = 0 then repeat(md5(n::text), 100) else 'note ' || n end,
       (n % 100000) / 100.0, n % 13 > 0,
       timestamptz '2025-01-01 00:00+00' + n * interval '37 seconds', timestamp '2025-06-01' + n * interval '1 second'
from generate_series(1, $customers) n;
insert into orders
select n, 1 + n * 7919 % $customers, (array['new', 'paid', 'shipped', 'returned'])[1 + n % 4]::order_status,
       (n * 31 % 1000000) / 100.0, n / 3.0, timestamptz '2025-01-01 00:00+00' + n * interval '19 seconds',
       case when n % 3 = 0 then date '2025-01-01' + (n % 365)::int end,
       case when n % 5 = 0 then array['gift', 'tag ' || n % 9] end
from generate_series(1, $orders) n;
insert into order_lines
select o, l, 'SKU-' || o * 7 % 5000, 1 + l * 3 % 9, (o * l % 100000) / 100.0,
       case when o % 4 = 0 then 0.05 * l end, o / 7.0, 'cost ' || o
from generate_series(1, $orders) o, generate_series(1, $lines) l;
insert into page_views
select timestamptz '2025-03-01 00:00+00' + n / 3 * interval '1 second', nullif(n / 3 % 500, 0),
       '/p/' || n / 3 % 40, n / 3 % 800
from generate_series(1, $views) n;
analyze;
"""

TABLES = ("public.customers", "public.orders", "public.order_lines", "public.page_views")


@dataclass(frozen=True)
class Size:
    """Rows per table; ``lines`` per order."""

    customers: int
    orders: int
    lines: int
    views: int

    @property
    def rows(self) -> int:
        return self.customers + self.orders * (1 + self.lines) + self.views


DEMO = Size(customers=30_000, orders=50_000, lines=2, views=20_000)
SMALL = Size(customers=300, orders=500, lines=2, views=200)


def build(dsn: str, size: Size, publication: str = "cdc_shop") -> None:
    """Create the tables, fill them, and publish all four."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute(Template(FILL).substitute(asdict(size)))
        connection.execute(f"create publication {publication} for table {', '.join(TABLES)}")


class Load(LoadGenerator):
    """A writer that changes the shop. ``done`` counts rows."""

    def __init__(self, dsn: str, seed: int = 1, pause_s: float = 0.05) -> None:
        super().__init__(seed, pause_s)
        self.dsn = dsn
        self._next_key = 1_000_000_000 * seed

    @contextmanager
    def session(self) -> Iterator[Callable[[], None]]:
        with psycopg.connect(self.dsn) as connection:
            yield lambda: self._step(connection)

    def _step(self, connection: psycopg.Connection[Any]) -> None:
        changes = self._random.sample(CHANGES, k=self._random.randint(1, 4))
        with connection.transaction():
            for kind, statement in changes:
                self._next_key += 1
                numbers = {"a": self._random.random(), "b": self._random.random(), "key": self._next_key}
                self.done[kind] += connection.execute(statement, numbers).rowcount
            if self._random.random() < 0.3:
                self._swap_keys(connection)

    def _swap_keys(self, connection: psycopg.Connection[Any]) -> None:
        """Two orders exchange their keys through an unused third key."""
        pair = connection.execute(
            "select id from orders where id > (select max(id) from orders) * %s order by id limit 2 for update",
            [self._random.random() * 1e-5],
        ).fetchall()
        if len(pair) == 2:
            (first,), (second,) = pair
            for old, new in ((first, -1), (second, first), (-1, second)):
                connection.execute("update orders set id = %s where id = %s", [new, old])
            self.done["key swap"] += 2

    def add_column(self, column: LiteralString) -> None:
        """Add a column with a constant default to ``orders`` and update some of its rows."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"alter table orders add column {column} text default 'web'")
            self.done["update"] += connection.execute(
                f"update orders set {column} = 'app' where id in (select id from orders order by id limit 200)"
            ).rowcount

    def narrow_column(self) -> None:
        """Give a column of the table without a key a type that cannot hold all values of its earlier one."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("alter table page_views alter column milliseconds type smallint")

    def truncate(self) -> None:
        """Truncate the table without a key and insert new rows, in one transaction."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute("truncate page_views")
            self.done["truncate"] += 1
            self.done["insert"] += connection.execute(
                "insert into page_views select now(), n % 3, '/again/' || n % 4, n % 2 from generate_series(1, 500) n"
            ).rowcount


_SOME = "(select id from {table} where id >= (select id from {table} order by id offset "
_SOME += "floor(%(a)s * (select greatest(count(*) - 60, 1) from {table}))::int limit 1) order by id limit 40)"
SOME_CUSTOMERS = _SOME.format(table="customers")
SOME_ORDERS = _SOME.format(table="orders")

NEW_ORDER: LiteralString = """
insert into orders (id, customer_id, status, total, placed_at, tags)
values (%(key)s, 1, 'new', 9.99, now(), '{a,NULL,"b c"}')
"""
NEW_LINE: LiteralString = """
insert into order_lines (order_id, line_no, sku, quantity, price, weight, internal_note)
values (%(key)s, 1, 'SKU-NEW', 1, 9.99, 'NaN', 'secret')
"""

CHANGES: tuple[tuple[str, LiteralString], ...] = (
    ("update", f"update customers set balance = balance + 1, updated_at = now() where id in {SOME_CUSTOMERS}"),
    ("update", f"update customers set notes = repeat(md5(%(b)s::text), 90) where id in {SOME_CUSTOMERS}"),
    ("update", f"update customers set profile = profile || '{{\"seen\": true}}' where id in {SOME_CUSTOMERS}"),
    ("update", f"update orders set status = 'shipped', rate = %(b)s where id in {SOME_ORDERS}"),
    ("update", f"update order_lines set quantity = quantity + 1, discount = %(b)s where order_id in {SOME_ORDERS}"),
    ("update", "update page_views set milliseconds = 999 where ctid in (select ctid from page_views limit 5)"),
    ("insert", NEW_ORDER),
    ("insert", NEW_LINE),
    ("insert", "insert into page_views select now(), 1, '/same', 1 from generate_series(1, 3)"),
    ("delete", f"delete from orders where id in {SOME_ORDERS} and id %% 5 = 0"),
    ("delete", "delete from page_views where ctid in (select ctid from page_views where path = '/same' limit 2)"),
    ("key change", f"update customers set id = %(key)s where id = (select min(x.id) from {SOME_CUSTOMERS} x)"),
)
