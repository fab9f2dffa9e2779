"""The tests. `conversation` talks to a server in memory; `process` talks to a real one through its pipes."""
