"""YDB changefeeds in the formats JSON, DEBEZIUM_JSON and DYNAMODB_STREAMS_JSON."""
