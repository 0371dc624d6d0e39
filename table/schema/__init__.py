"""Columns and their types: as Avro, as Arrow, and as they change."""
