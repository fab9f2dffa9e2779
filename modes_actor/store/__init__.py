"""The one SQLite file in which every room that keeps state has its tables, or the same in memory.

Knows files, transactions and several processes at once; knows no session, no mode: each room brings its own tables, as
migrations, and its own statements, as functions of a connection. `database` is the door; what imports `sqlite3` is
loaded on first use.
"""
