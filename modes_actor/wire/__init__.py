"""MCP on the wire: a Struct for every protocol type, the codec, the version table, the error codes.

Nothing here waits, opens a file or knows what a mode is. One module per method family, so that a process pays only for
the families it is asked for.
"""
