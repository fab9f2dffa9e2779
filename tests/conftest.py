"""Fixtures that several modules of tests use."""

from tests.command_line import shell

__all__ = ["shell"]
