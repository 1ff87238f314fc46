"""The tables of a store, as the newest version has them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table, Text

#: The version that this code writes; :mod:`headwise.runs.migrations` upgrades older stores.
VERSION = 2

metadata = MetaData()

#: One row: the version of the schema.
schema = Table("headwise_schema", metadata, Column("version", Integer, nullable=False))

# JSON is kept as text: both databases return it unchanged, and PostgreSQL's JSON type would
# reorder it. Answers and failures share a table, so a key has one state.
results = Table(
    "headwise_results",
    metadata,
    Column("key", String(40), primary_key=True),
    Column("kind", String, nullable=False, index=True),
    Column("revision", Integer, nullable=False),
    Column("spec", Text, nullable=False),
    Column("rows", Text),
    Column("failure", Text),
    Column("code", String, nullable=False),
    Column("torch", String, nullable=False),
    Column("device", String, nullable=False),
    Column("dtype", String),
    Column("seconds", Float, nullable=False),
    Column("command", String, nullable=False, server_default=""),
    Column("seed", BigInteger),
)
