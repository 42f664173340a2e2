"""All mutants, in the order in which they run."""

from __future__ import annotations

from tests.mutants.api import API_MUTANTS
from tests.mutants.bigquery import BIGQUERY
from tests.mutants.binlog import BINLOG
from tests.mutants.change_log import CHANGE_LOG
from tests.mutants.change_tables import CHANGE_TABLES
from tests.mutants.commands import COMMANDS
from tests.mutants.commits import COMMITS
from tests.mutants.decided_runs import DECIDED_RUNS
from tests.mutants.direct import DIRECT_MERGES
from tests.mutants.dirty_keys import DIRTY_KEYS
from tests.mutants.dropped_copies import DROPPED_COPIES
from tests.mutants.engines import ENGINES
from tests.mutants.feed_messages import FEED_MESSAGES
from tests.mutants.feed_renames import FEED_RENAMES
from tests.mutants.feed_values import FEED_VALUES
from tests.mutants.feeds import FEEDS
from tests.mutants.files import FILES
from tests.mutants.first_copies import FIRST_COPIES
from tests.mutants.folds import FOLDS
from tests.mutants.formats import EVENT_FORMATS
from tests.mutants.given_commands import GIVEN_COMMANDS
from tests.mutants.histories import HISTORY
from tests.mutants.identities import IDENTITIES
from tests.mutants.late_changes import LATE_CHANGES
from tests.mutants.leaving import LEAVING
from tests.mutants.meanings import MEANINGS
from tests.mutants.measuring import MEASURING_MUTANTS
from tests.mutants.monitoring import MONITORING_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.mysql_texts import MYSQL_TEXTS
from tests.mutants.operating import OPERATING_MUTANTS
from tests.mutants.policies import POLICIES
from tests.mutants.polled_keys import POLLED_KEYS
from tests.mutants.polled_sql import POLLED_SQL
from tests.mutants.polling import POLLING
from tests.mutants.proofs import PROOFS
from tests.mutants.quarantine import QUARANTINE
from tests.mutants.redshift import REDSHIFT_TARGET
from tests.mutants.refused_tables import REFUSED_TABLES
from tests.mutants.refusing_targets import REFUSING_TARGETS
from tests.mutants.repeated_changes import REPEATED_CHANGES
from tests.mutants.repeated_runs import REPEATED_RUNS
from tests.mutants.replaced_tables import REPLACED_TABLES
from tests.mutants.runs import RUNS
from tests.mutants.salesforce import SALESFORCE
from tests.mutants.schema_changes import SCHEMA_CHANGES
from tests.mutants.server_settings import SERVER_SETTINGS
from tests.mutants.sessions import SERVER_ERRORS, SESSIONS
from tests.mutants.several_copies import SEVERAL_COPIES
from tests.mutants.shards import SHARD_MUTANTS
from tests.mutants.snowflake import SNOWFLAKE_TARGET
from tests.mutants.source_names import SOURCE_NAMES
from tests.mutants.spanner import SPANNER_MUTANTS
from tests.mutants.special_values import SPECIAL_VALUES
from tests.mutants.targets import TARGET_MUTANTS
from tests.mutants.texts import TEXT_MUTANTS

MUTANTS: tuple[Mutant, ...] = (
    *COMMITS,
    *CHANGE_LOG,
    *REPEATED_RUNS,
    *RUNS,
    *DECIDED_RUNS,
    *SEVERAL_COPIES,
    *COMMANDS,
    *GIVEN_COMMANDS,
    *LEAVING,
    *LATE_CHANGES,
    *MEANINGS,
    *SALESFORCE,
    *REPEATED_CHANGES,
    *POLLING,
    *POLLED_KEYS,
    *POLLED_SQL,
    *SERVER_SETTINGS,
    *SESSIONS,
    *SERVER_ERRORS,
    *EVENT_FORMATS,
    *FILES,
    *BINLOG,
    *MYSQL_TEXTS,
    *REFUSED_TABLES,
    *REFUSING_TARGETS,
    *REPLACED_TABLES,
    *SOURCE_NAMES,
    *CHANGE_TABLES,
    *FOLDS,
    *DIRECT_MERGES,
    *ENGINES,
    *QUARANTINE,
    *API_MUTANTS,
    *MEASURING_MUTANTS,
    *MONITORING_MUTANTS,
    *OPERATING_MUTANTS,
    *DIRTY_KEYS,
    *IDENTITIES,
    *SCHEMA_CHANGES,
    *POLICIES,
    *DROPPED_COPIES,
    *HISTORY,
    *TARGET_MUTANTS,
    *SHARD_MUTANTS,
    *FIRST_COPIES,
    *PROOFS,
    *SPECIAL_VALUES,
    *FEED_RENAMES,
    *FEEDS,
    *FEED_MESSAGES,
    *FEED_VALUES,
    *BIGQUERY,
    *REDSHIFT_TARGET,
    *SNOWFLAKE_TARGET,
    *SPANNER_MUTANTS,
    *TEXT_MUTANTS,
)
