"""What a transport needs around a decoder of messages: tables, schemas, their empty copies, what nobody can read."""
