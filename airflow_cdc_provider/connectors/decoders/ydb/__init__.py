"""YDB changefeeds: its own JSON, the form that looks like Debezium's, and the one that looks like DynamoDB Streams."""
