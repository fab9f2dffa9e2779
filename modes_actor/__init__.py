"""Modes for any MCP client: a role, the tools it may use, the files it may edit, the servers it may reach."""

__version__ = "0.1.0"
