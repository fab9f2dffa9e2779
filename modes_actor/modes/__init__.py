"""Modes: what they are, where they are written, and what they allow.

Reading files happens in `loader`, `rules` and `servers`, and resolving a path looks at links in `paths`; all else is
pure. Nothing here awaits, and nothing here raises because of what a mode file says.
"""
