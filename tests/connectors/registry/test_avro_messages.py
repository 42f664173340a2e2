"""Messages in Avro that are decoded as columns give what each gives as JSON by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from random import Random

import pytest

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.message import Decoder, DecoderSettings, MarksSnapshots, Message
from airflow_cdc_provider.connectors.source import SnapshotFound
from airflow_cdc_provider.connectors.transports.messages.decoding import MessageReader
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from tests.blocks import unpacked
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.debezium_encoder import FIELDS, ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.golden import decoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.formats.test_batch_decoding import Decoded, as_decoded
from tests.connectors.formats.test_simulated_sources import SETUPS, setting
from tests.connectors.registry.schema_files import SchemasInMemory, offline, registered_avro
from tests.model import seeds

FLOATS, ODD_FLOATS = (None, 0.0, 0.25, 1e-320, 1e300), (float("nan"), float("inf"), float("-inf"), -0.0)
MORE_FIELDS = [
    {"type": "double", "optional": True, "field": "ratio"},
    {"type": "float", "optional": True, "field": "short"},
    {"type": "boolean", "optional": True, "field": "open"},
    {"type": "bytes", "optional": True, "field": "raw"},
]
STARTED_MS = 1_700_000_000_000


@pytest.mark.parametrize("setup", [setup for setup in SETUPS if setup.transactions and not setup.schemas], ids=str)
def test_a_simulated_source_is_decoded_equally_as_columns(setup: ConnectorSetup) -> None:
    """Also with damaged messages among the others."""
    seed = seeds.seed()
    for number in range(seeds.histories(1)):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=setup.connector == "oracle").history(120)
        plain = with_schemas(widened(DebeziumEncoder(setup, random).messages(history), random), fields=ALL_FIELDS)
        files, messages = registered_avro(plain)
        for _ in range(random.randrange(4)):
            at, damage = random.randrange(len(messages)), random.choice(("value", "key"))
            messages[at] = messages[at]._replace(**{damage: (getattr(messages[at], damage) or b"")[:-1] or None})
        settings = random.choice((setting(setup.table, topic_prefix="p"), DecoderSettings()))
        together, in_blocks = decoded(debezium(settings), setup.table.table, files, messages)
        alone, _ = decoded(OneByOne(debezium(settings)), setup.table.table, files, messages)
        assert together == alone, f"CDC_SEED={seed}"
        assert in_blocks > len(messages) / 4


ALL_FIELDS = [*FIELDS, *MORE_FIELDS]


def widened(messages: Iterable[Message], random: Random) -> Iterator[Message]:
    """With values of ``MORE_FIELDS``."""
    for number, message in enumerate(messages):
        value = json.loads(message.value or b"null")
        for part in ("before", "after"):
            if value and value[part]:
                ratio = random.choice(FLOATS if random.random() < 0.98 else ODD_FLOATS)
                short = random.choice((None, 1.5, 0.1))
                value[part] |= {"ratio": ratio, "short": short, "open": random.choice((None, True, False))}
                value[part] |= {"raw": random.choice((None, "", "AQI="))}
        text = json.dumps(value, ensure_ascii=False).encode() if value else None
        yield message._replace(value=text, offset=number, at_ms=STARTED_MS + random.randrange(1000))


def debezium(settings: DecoderSettings) -> MarksSnapshots:
    made = decoder("debezium", settings)
    assert isinstance(made, MarksSnapshots)
    return made


class OneByOne:
    """A decoder that decodes neither columns nor many messages at once."""

    def __init__(self, whole: MarksSnapshots) -> None:
        self.codec, self.whole_rows_remedy, self.reads_avro = whole.codec, whole.whole_rows_remedy, whole.reads_avro
        self.one_table_per_topic = whole.one_table_per_topic
        self.decode, self.snapshot_watch = whole.decode, whole.snapshot_watch


def decoded(
    made: Decoder, table: str, files: SchemasInMemory, messages: Sequence[Message]
) -> tuple[tuple[Decoded, list[SourceSnapshot]], int]:
    """What is decoded, with the snapshots found, and the number of messages in blocks."""
    items = list(MessageReader(made, {table}, {}, 1, offline(files)).items(messages))
    in_blocks = sum(item.columns.num_rows for item in items if isinstance(item, Block))
    snapshots = [item.snapshot for item in items if isinstance(item, SnapshotFound)]
    return (as_decoded(list(unpacked(items))), snapshots), in_blocks
