"""Programs that once showed a defect, each with what went wrong."""

from __future__ import annotations

from tests.programs.program import (
    DEBEZIUM,
    DELTA,
    FEATURES,
    ICEBERG,
    MARIADB,
    POLL,
    TO_POSTGRES,
    YDB,
    AddColumn,
    AddTarget,
    AllowFeatures,
    AnswerQuestion,
    ChangePolicy,
    Check,
    Command,
    CreateTable,
    Delete,
    DropColumn,
    DropTable,
    Edit,
    LoseCopy,
    LoseLog,
    Program,
    Put,
    PutBad,
    Rename,
    RenameColumn,
    RenameTable,
    RenameTarget,
    Replay,
    Retype,
    Server,
    SetClock,
    Settle,
    Setup,
    Truncate,
)

ASKED = Setup(policy="ask")
BEGIN = Settle()
C, D = 0, 1
"""Names of columns that are added."""

NAMED: dict[str, Program] = {
    "a target that is added later has the columns that the first one ignores": Program(
        ASKED,
        (
            *(BEGIN, AddColumn(C), Put(2, 1), Settle(), AnswerQuestion("ignore"), Settle()),
            *(AddTarget(DELTA), Settle(), Put(2, 3), Put(4, 5), Settle()),
        ),
    ),
    "two targets with two answers about one column": Program(
        Setup(policy="ask", targets=(DELTA, TO_POSTGRES)),
        (
            *(BEGIN, AddColumn(C), Put(2, 1), Settle(), AnswerQuestion("ignore"), AnswerQuestion("apply"), Settle()),
            *(Put(2, 3), Put(4, 5), Settle()),
        ),
    ),
    "a copy and its history with two answers about one column": Program(
        Setup(policy="ask", history="scd2", beside=True),
        (
            *(BEGIN, AddColumn(C), Put(2, 1), Settle(), AnswerQuestion("ignore"), AnswerQuestion("apply"), Settle()),
            *(Put(2, 3), Put(4, 5), Settle()),
        ),
    ),
    "a publication without deletes for a while": Program(
        Setup(), (BEGIN, Server("deletes"), Delete(1), Settle(), Server("deletes", on=True), Put(2, 4), Settle())
    ),
    "a publication without deletes between two runs": Program(
        Setup(), (BEGIN, Server("deletes"), Delete(1), Server("deletes", on=True), Put(2, 4), Settle())
    ),
    "a column is renamed while a target is added": Program(
        Setup(source=MARIADB, targets=(FEATURES,), policy="ask"),
        (BEGIN, RenameColumn(0, C), AddTarget(DELTA), Put(2, 1), Settle(), AnswerQuestion("apply"), Settle()),
    ),
    "a publication without deletes between two runs, and another setting of it": Program(
        Setup(),
        (
            *(BEGIN, Server("deletes"), Delete(1), Server("deletes", on=True), Server("root", on=True)),
            *(Put(2, 4), Settle()),
        ),
    ),
    "a new column with the former name of a renamed one": Program(
        Setup(source=DEBEZIUM, targets=(FEATURES,), policy="ask"),
        (
            *(BEGIN, RenameColumn(0, C), Put(1, 4), Settle(), AnswerQuestion("rename"), Settle()),
            *(ChangePolicy("default"), Put(2, 5), AddColumn(2), Put(1, 6), Put(3, 7), Settle()),
        ),
    ),
    "a declared key that is not unique": Program(Setup(declared_key=True), (BEGIN, Put(5, 1), Put(4, 1), Settle())),
    "a record waits while a column is renamed": Program(
        Setup(targets=(FEATURES,), quarantine=True, policy="apply"),
        (BEGIN, PutBad(4), Settle(), RenameColumn(0, C), Put(3, 5), Settle(), Replay("set"), Settle()),
    ),
    "a record waits while a column is renamed, and a new one has its name": Program(
        Setup(targets=(FEATURES,), quarantine=True, policy="apply"),
        (
            *(BEGIN, PutBad(4), Settle(), RenameColumn(0, C), AddColumn(2, "default"), Put(3, 5), Settle()),
            *(Replay("set"), Settle()),
        ),
    ),
    "a record of a log waits while a column that was added is renamed": Program(
        Setup(targets=(FEATURES,), quarantine=True, policy="apply", history="log"),
        (
            *(BEGIN, AddColumn(C, "default"), Settle(), PutBad(4), Put(4, 6), Settle(), RenameColumn(1, D)),
            *(Put(3, 5), Settle(), Replay("set"), Settle()),
        ),
    ),
    "a record waits while another column gets the name of one": Program(
        Setup(quarantine=True),
        (
            *(BEGIN, PutBad(4), Settle(), DropColumn(0), Put(3, 5), Settle(), AddColumn(2), Put(2, 8), Settle()),
            *(Replay("set"), Settle()),
        ),
    ),
    "a record waits while another column gets the name of one, without ids of columns": Program(
        Setup(source=MARIADB, quarantine=True),
        (
            *(BEGIN, PutBad(4), Settle(), DropColumn(0), Put(3, 5), Settle(), AddColumn(2), Put(2, 8), Settle()),
            *(Replay("set"), Settle()),
        ),
    ),
    "a record waits while its column is dropped in the target, and another one gets its name": Program(
        Setup(source=MARIADB, quarantine=True, policy="null", targets=(FEATURES,)),
        (
            *(BEGIN, PutBad(4), Settle(), DropColumn(0), Put(3, 5), Settle(), AddColumn(2), Put(2, 8), Settle()),
            *(Replay("set"), Settle()),
        ),
    ),
    "two copies with one record that waits, of which one is paused": Program(
        Setup(targets=(DELTA, DELTA), quarantine=True),
        (BEGIN, PutBad(4), Settle(), Command("pause"), Replay("set", 0), Replay("set", 1), Settle()),
    ),
    "an answer resync is refused, and the table goes on without the ignored column": Program(
        ASKED,
        (
            *(BEGIN, Put(1, 1), Put(2, 2), Put(3, 3), Put(4, 3), Settle()),
            *(AddColumn(C), Put(2, 5), Put(3, 6), Settle()),
            *(AnswerQuestion("ignore"), Settle(), AddColumn(D), Put(2, 7), Delete(1), Delete(2), Delete(4), Settle()),
            *(AnswerQuestion("resync"), Settle(), Command("resume"), Settle(), AnswerQuestion("apply"), Settle()),
            *(Put(4, 4), Settle()),
        ),
    ),
    "a copy is paused after a resync that waits": Program(
        Setup(targets=(DELTA, DELTA)),
        (BEGIN, Command("resync"), Command("pause"), Put(2, 3), Settle(), Command("resume"), Settle()),
    ),
    "a table is renamed whose first copy is paused and of a former table": Program(
        Setup(new="copy", tables=2, targets=(DELTA, DELTA), policy="apply"),
        (
            *(BEGIN, Command("pause"), DropTable(0), CreateTable(), Settle(), Command("resync", 1), Settle()),
            *(RenameTable(1), Put(2, 7, 1), Settle()),
        ),
    ),
    "a condition is taken out of the YAML and put back": Program(
        Setup(filtered=True), (BEGIN, Edit("filtered", False), Put(2, 3), Settle(), Edit("filtered", True), Settle())
    ),
    "a column is shown in the YAML and masked again": Program(
        Setup(secret="mask"), (BEGIN, Edit("secret", "plain"), Put(2, 4), Settle(), Edit("secret", "mask"), Settle())
    ),
    "a target that is added later has no column that is withheld": Program(
        Setup(sensitive=True),
        (BEGIN, AddColumn(C), Put(2, 5), Settle(), AddTarget(DELTA), Settle(), Put(2, 6), Settle()),
    ),
    "a lost target that is copied again has no column that is withheld": Program(
        Setup(sensitive=True),
        (BEGIN, AddColumn(C), Put(2, 5), Settle(), LoseCopy(), Command("resync"), Settle(), Put(2, 6), Settle()),
    ),
    "a record of a history waits through a truncate": Program(
        Setup(history="scd2", quarantine=True),
        (BEGIN, PutBad(4), Settle(), Truncate(), Settle(), Replay("set"), Settle()),
    ),
    "a bad value stops the copy into a target that is added later": Program(
        Setup(source=MARIADB), (BEGIN, PutBad(3), Settle(), AddTarget(DELTA), Settle(), Put(3, 1), Settle())
    ),
    "a record is decided where all targets have names": Program(
        Setup(targets=(DELTA, TO_POSTGRES), unnamed=False, quarantine=True),
        (BEGIN, PutBad(4), Settle(), Replay("set"), Settle(), Replay("set", 1), Settle()),
    ),
    "a clock goes back between two batches of a history": Program(
        Setup(source=DEBEZIUM, history="scd2"),
        (BEGIN, Put(5, 1), Settle(), Delete(5), Settle(), SetClock(), Put(5, 2), Settle()),
    ),
    "a history with the commit time of its rows is copied again": Program(
        Setup(history="scd2", metadata=True), (BEGIN, Put(5, 1), Settle(), Command("resync"), Settle())
    ),
    "a history of a feed is copied again after a column was added": Program(
        Setup(source=DEBEZIUM, history="scd2"), (AddColumn(D), Put(1, 0), BEGIN, Command("resync"), Settle())
    ),
    "a history of a feed that ignores deletes is copied again": Program(
        Setup(source=DEBEZIUM, history="scd2", on_delete="ignore"),
        (BEGIN, Put(1, 4), Settle(), Delete(2), Settle(), Command("resync"), Settle(), Put(3, 2), Settle()),
    ),
    "a history is given up while deleted rows are kept": Program(
        Setup(history="scd2", on_delete="ignore"),
        (BEGIN, Put(1, 4), Delete(2), Settle(), Edit("history", "none"), Command("resync"), Settle(), Put(3, 2)),
    ),
    "a new column of a history has the name of a former one": Program(
        Setup(history="scd2"),
        (BEGIN, DropColumn(0), Put(2, 8), Settle(), AddColumn(2, "int"), Put(1, 3), Settle()),
    ),
    "rows that are kept while a column's name goes to another one": Program(
        Setup(on_delete="ignore"),
        (
            *(BEGIN, Delete(3), Settle(), RenameColumn(0, C), AddColumn(2, "int"), Put(2, 3)),
            *(Command("resync"), Settle()),
        ),
    ),
    "a new column with the name of an ignored one": Program(
        ASKED,
        (
            *(BEGIN, AddColumn(C), Put(2, 1), Settle(), AnswerQuestion("ignore"), Settle()),
            *(DropColumn(1), Put(3, 2), Settle(), AddColumn(C, "int"), Put(4, 3), Settle()),
        ),
    ),
    "timestamps in a zone that the YAML does not name": Program(
        Setup(source=POLL, zone="hidden"), (BEGIN, Put(2, 3), Settle(), Check())
    ),
    "all messages of a feed were read and removed": Program(Setup(source=DEBEZIUM), (BEGIN, LoseLog(), Check())),
    "a binlog leaves a database out for a while": Program(
        Setup(source=MARIADB),
        (
            *(BEGIN, Server("filter"), Put(2, 3), Settle(), Put(3, 4), Settle(), Server("filter", on=True)),
            *(Put(2, 4), Settle()),
        ),
    ),
    "keys that look like variables of Spark": Program(Setup(targets=(ICEBERG,), text_keys=True), (BEGIN, Put(2, 5))),
    "a target table that was dropped is not green": Program(Setup(), (BEGIN, LoseCopy(), Settle())),
    "two targets of MariaDB with two answers": Program(
        Setup(source=MARIADB, policy="ask", targets=(DELTA, FEATURES)),
        (
            *(BEGIN, AddColumn(D), Put(2, 1), Settle(), AnswerQuestion("apply"), AnswerQuestion("ignore"), Settle()),
            *(Put(2, 3), Put(4, 5), Settle()),
        ),
    ),
    "a table that is dropped and comes back is new again": Program(
        Setup(new="ignore"), (BEGIN, CreateTable(), Settle(), DropTable(1), Settle(), CreateTable())
    ),
    "an answer about a new table is none about the next one of its name": Program(
        Setup(new="ask"),
        (BEGIN, CreateTable(), Settle(), AnswerQuestion("ignore"), Settle(), DropTable(1), CreateTable()),
    ),
    "a run of a replicator without copies is not its first one": Program(
        Setup(new="ask", declared_key=True),
        (BEGIN, Put(4, 4), CreateTable(), Settle(), DropTable(0), Settle(), CreateTable()),
    ),
    "the key audit of a history that copies left rows out of": Program(
        Setup(source=POLL, history="scd2", partial=True), (BEGIN, Put(5, 1), Settle(), Settle())
    ),
    "a table that was dropped and made again, whose copy keeps rows": Program(
        Setup(new="copy", on_delete="soft", reconcile="auto"),
        (BEGIN, CreateTable(), Settle(), DropTable(0), CreateTable(), Put(2, 7, 1), Settle(), Put(3, 1, 1)),
    ),
    "a table that was dropped and made again, with a history": Program(
        Setup(new="copy", history="scd2", reconcile="auto"),
        (BEGIN, CreateTable(), Settle(), DropTable(0), CreateTable(), Put(2, 7, 1), Settle(), Put(3, 1, 1)),
    ),
    "a poll has no TRUNCATE that could be ignored": Program(
        Setup(source=POLL, ignore=("truncate",)), (BEGIN, Delete(2), Delete(1), Delete(3))
    ),
    "a history of a column with a wider type, in a target that may follow it later": Program(
        Setup(history="scd2"), (BEGIN, Retype("widen"), Put(2, 5), Settle(), AllowFeatures(), Settle())
    ),
    "a history of a column that the YAML casts for some time": Program(
        Setup(history="scd2"), (BEGIN, Edit("cast", True), Put(2, 3), Settle(), Edit("cast", False), Settle())
    ),
    "a log of changes of a table that was rewritten": Program(Setup(history="log"), (BEGIN, Retype("narrow"))),
    "a target has another name while its replicator gets one": Program(
        Setup(unnamed=False), (BEGIN, RenameTarget(), Rename())
    ),
    "a copy is paused, and its target has another name for some time": Program(
        Setup(unnamed=False), (BEGIN, Command("pause"), RenameTarget())
    ),
    "the position is lost while the only table is paused": Program(Setup(), (BEGIN, Command("pause"), LoseLog())),
    "a target is added while the position is lost": Program(Setup(), (BEGIN, LoseLog(), AddTarget(DELTA))),
    "a table of a feed is copied again from the log while another one has later windows": Program(
        Setup(source=YDB, tables=2), (BEGIN, Put(2, 3, 1), Settle(), LoseCopy(), Command("resync"))
    ),
}
