"""The settings of PostgreSQL 14 to 18 that a session may inherit from its role, its database or its server, each with
the reason. All others are fixed by ``core/connections/postgres_settings.py``."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "how the server finds rows, not which rows": """
        constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction
        default_statistics_target effective_cache_size enable_async_append enable_bitmapscan
        enable_distinct_reordering enable_gathermerge enable_group_by_reordering enable_hashagg enable_hashjoin
        enable_incremental_sort enable_indexonlyscan enable_indexscan enable_material enable_memoize enable_mergejoin
        enable_nestloop enable_parallel_append enable_parallel_hash enable_partition_pruning
        enable_partitionwise_aggregate enable_partitionwise_join enable_presorted_aggregate
        enable_self_join_elimination enable_seqscan enable_sort enable_tidscan from_collapse_limit geqo geqo_effort
        geqo_generations geqo_pool_size geqo_seed geqo_selection_bias geqo_threshold jit jit_above_cost
        jit_expressions jit_inline_above_cost jit_optimize_above_cost jit_tuple_deforming join_collapse_limit
        min_parallel_index_scan_size min_parallel_table_scan_size parallel_setup_cost parallel_tuple_cost
        plan_cache_mode random_page_cost recursive_worktable_factor seq_page_cost debug_parallel_query
        force_parallel_mode ignore_system_indexes""",
    "no statement depends on the order of a scan": "synchronize_seqscans",
    "memory, files and processes of a statement: it spills to disk, or runs in one process": """
        backend_flush_after effective_io_concurrency hash_mem_multiplier io_combine_limit logical_decoding_work_mem
        maintenance_io_concurrency maintenance_work_mem max_parallel_maintenance_workers max_parallel_workers
        max_parallel_workers_per_gather parallel_leader_participation temp_buffers temp_tablespaces work_mem""",
    "a limit that only a superuser can change: the error names it": "max_stack_depth temp_file_limit",
    "where and how new tables are stored: the operator's choice": """
        default_table_access_method default_tablespace default_toast_compression gin_pending_list_limit""",
    "when a commit reaches disk: a crash takes back the last commits with their cursors": """
        commit_delay commit_siblings synchronous_commit wal_compression wal_init_zero wal_recycle wal_skip_threshold
        wal_consistency_checking""",
    "each transaction has its own; a new one begins with the defaults, which are fixed": """
        transaction_deferrable transaction_isolation transaction_read_only""",
    "ends or keeps a connection only if its client is gone": """
        client_connection_check_interval tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval""",
    "delays the start of a session only": "post_auth_delay",
    "libraries are loaded before the first statement": """
        dynamic_library_path extension_control_path local_preload_libraries session_preload_libraries""",
    "errors are distinguished by their SQLSTATE": "lc_messages",
    "what the server logs and measures": """
        application_name backtrace_functions compute_query_id debug_pretty_print debug_print_parse debug_print_plan
        debug_print_rewritten jit_debugging_support jit_dump_bitcode jit_profiling_support log_connections
        log_disconnections log_duration log_error_verbosity log_executor_stats log_lock_failures log_lock_waits
        log_min_duration_sample log_min_duration_statement log_min_error_statement log_min_messages
        log_parameter_max_length log_parameter_max_length_on_error log_parser_stats log_planner_stats
        log_replication_commands log_statement log_statement_sample_rate log_statement_stats log_temp_files
        log_transaction_sample_rate stats_fetch_consistency trace_notify trace_sort track_activities
        track_cost_delay_timing track_counts track_functions track_io_timing track_wal_io_timing update_process_title
        debug_discard_caches escape_string_warning md5_password_warnings""",
    "of statements that no session runs": """
        allow_in_place_tablespaces allow_system_table_mods check_function_bodies createrole_self_grant
        default_text_search_config file_copy_method icu_validation_level lo_compat_privileges password_encryption
        scram_iterations vacuum_buffer_usage_limit vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit
        vacuum_cost_page_miss vacuum_failsafe_age vacuum_freeze_min_age vacuum_freeze_table_age
        vacuum_max_eager_freeze_failure_rate vacuum_multixact_failsafe_age vacuum_multixact_freeze_min_age
        vacuum_multixact_freeze_table_age vacuum_truncate""",
    "no statement relies on a trigger or a rule": "event_triggers session_replication_role",
    "how long a deadlock remains: an error then, which is retried": "deadlock_timeout",
}

INHERITED: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
