"""Fixtures that several modules of tests use."""

from tests.command_line import shell
from tests.sessions_desk import desk

__all__ = ["desk", "shell"]
