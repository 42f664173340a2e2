"""The session settings of MySQL and MariaDB that a session may inherit from its server, each with the reason. All
others are fixed by ``core/connections/mysql_settings.py``."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "how the server finds rows, not which rows": """
        eq_range_index_dive_limit expensive_subquery_limit in_predicate_conversion_threshold join_cache_level
        max_length_for_sort_data max_rowid_filter_size max_seeks_for_key old optimizer_adjust_secondary_key_costs
        optimizer_disk_read_cost optimizer_disk_read_ratio optimizer_extra_pruning_depth
        optimizer_index_block_copy_cost optimizer_join_limit_pref_ratio optimizer_key_compare_cost
        optimizer_key_copy_cost optimizer_key_lookup_cost optimizer_key_next_find_cost optimizer_max_sel_arg_weight
        optimizer_max_sel_args optimizer_prune_level optimizer_row_copy_cost optimizer_row_lookup_cost
        optimizer_row_next_find_cost optimizer_rowid_compare_cost optimizer_rowid_copy_cost optimizer_scan_setup_cost
        optimizer_search_depth optimizer_selectivity_sampling_limit optimizer_switch
        optimizer_use_condition_selectivity optimizer_where_cost optimizer_max_subgraph_pairs
        range_optimizer_max_mem_size secondary_engine_cost_threshold set_operations_buffer_size use_secondary_engine
        use_stat_tables windowing_use_high_precision generated_random_password_length explain_format
        explain_json_format_version keep_files_on_create query_cache_strip_comments query_cache_type
        query_cache_wlock_invalidate""",
    "memory and files of a statement: it goes to disk, or fails by name": """
        aria_repair_threads aria_sort_buffer_size big_tables bulk_insert_buffer_size innodb_tmpdir
        internal_tmp_mem_storage_engine join_buffer_size join_buffer_space_limit max_heap_table_size mrr_buffer_size
        myisam_repair_threads myisam_sort_buffer_size net_buffer_length parser_max_mem_size preload_buffer_size
        query_alloc_block_size query_prealloc_size range_alloc_block_size read_buffer_size read_rnd_buffer_size
        rowid_merge_buff_size sort_buffer_size sql_buffer_result temptable_max_ram tmp_memory_table_size
        tmp_table_size transaction_alloc_block_size transaction_prealloc_size thread_pool_priority
        connection_memory_chunk_size connection_memory_limit global_connection_memory_tracking
        global_connection_memory_status_limit connection_memory_status_limit max_tmp_session_space_usage""",
    "read-only in a session: a larger row is an error": "max_allowed_packet",
    "the driver sets it when it opens the session": """
        autocommit character_set_connection net_retry_count session_track_gtids session_track_schema
        session_track_state_change session_track_system_variables session_track_transaction_info tcp_nodelay
        require_row_format resultset_metadata""",
    "each column that we create has a character set and a collation of its own": """
        character_set_collations character_set_database character_set_filesystem character_set_server
        collation_database collation_server default_collation_for_utf8mb4""",
    "each table that we create has its engine; how it is stored is the operator's choice": """
        alter_algorithm column_compression_threshold column_compression_zlib_level column_compression_zlib_strategy
        column_compression_zlib_wrap default_storage_engine default_table_encryption default_tmp_storage_engine
        enforce_storage_engine explicit_defaults_for_timestamp innodb_compression_default
        innodb_default_encryption_key_id innodb_strict_mode innodb_table_locks old_alter_table storage_engine
        disabled_storage_engines""",
    "no table that we create or read by has a column that counts by itself": """
        auto_increment_increment auto_increment_offset identity insert_id last_insert_id
        sql_generate_invisible_primary_key select_into_buffer_size select_into_disk_sync select_into_disk_sync_delay""",
    "only an administrator can change it; the error names it": "sql_require_primary_key",
    "how commits of the target are logged, for its own replicas": """
        binlog_alter_two_phase binlog_annotate_row_events binlog_ddl_skip_rewrite
        binlog_direct_non_transactional_updates binlog_format binlog_row_image binlog_row_value_options
        binlog_rows_query_log_events default_master_connection gtid_domain_id gtid_next gtid_seq_no
        immediate_server_version max_relay_log_size original_commit_timestamp original_server_version
        pseudo_replica_mode pseudo_slave_mode pseudo_thread_id rbr_exec_mode server_id skip_parallel_replication
        skip_replication sql_log_bin sql_slave_skip_counter sql_replica_skip_counter transaction_allow_batching
        transaction_write_set_extraction wsrep_gtid_seq_no wsrep_on wsrep_osu_method wsrep_retry_autocommit
        wsrep_trx_fragment_size wsrep_trx_fragment_unit ndb_table_no_logging create_tmp_table_binlog_formats
        slave_connections_needed_for_purge""",
    "a node waits for its cluster, or serves what it has without it: the operator's choice": """
        wsrep_causal_reads wsrep_dirty_reads wsrep_sync_wait""",
    "how long a deadlock remains: an error then, which is retried": """
        deadlock_search_depth_long deadlock_search_depth_short deadlock_timeout_long deadlock_timeout_short
        innodb_snapshot_isolation""",
    "what the server logs, measures and warns of": """
        error_count histogram_size histogram_type information_schema_stats_expiry log_disabled_statements
        log_queries_not_using_indexes log_slow_admin_statements log_slow_always_query_time
        log_slow_disabled_statements log_slow_filter log_slow_max_warnings log_slow_min_examined_row_limit
        log_slow_query log_slow_query_time log_slow_rate_limit log_slow_slave_statements log_slow_verbosity
        log_warnings long_query_time max_error_count min_examined_row_limit note_verbosity optimizer_trace
        optimizer_trace_features optimizer_trace_limit optimizer_trace_max_mem_size optimizer_trace_offset
        optimizer_record_context end_markers_in_json profiling profiling_history_size progress_report_time
        slow_query_log sql_log_off sql_notes sql_warnings warning_count print_identified_with_as_hex
        show_create_table_skip_secondary_engine show_create_table_verbosity show_old_temporals
        terminology_use_previous myisam_stats_method aria_stats_method analyze_max_length analyze_sample_percentage
        session_track_user_variables""",
    "of statements and functions that no session runs": """
        default_regex_flags default_week_format innodb_ft_enable_stopword innodb_ft_user_stopword_table
        max_delayed_threads max_insert_delayed_threads max_sp_recursion_depth max_tmp_tables old_passwords
        block_encryption_mode standard_compliant_cte system_versioning_alter_history system_versioning_insert_history
        updatable_views_with_limit xa_detach_on_prepare max_points_in_geometry new mhnsw_default_distance
        mhnsw_default_m mhnsw_ef_search sp_tablespace path analyze_max_length""",
    "no server has a default of it: a session that sets it does so itself": """
        external_user in_transaction last_gtid proxy_user rand_seed1 rand_seed2 timestamp""",
    "how many sessions an account may have: an error then": "max_user_connections",
}

INHERITED: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
