"""TOML as people might have written it, for hypothesis: servers in each of the ways that tables can be written in."""

import re
import tomllib

from hypothesis import reject
from hypothesis import strategies as st

_COMMENTS = st.sampled_from(["", "", "", "\n", "  \n", "# a comment\n", "# [x]\n# y = 1\n", "\n# c\n\n"])
_BEHIND = st.sampled_from(["", "", " # behind", "  "])
_INDENTS = st.sampled_from(["", "", "  ", "\t"])
_VALUES = st.sampled_from(
    [
        "1",
        '"a # b"',
        "'c:\\d'",
        "true",
        "-inf",
        "1979-05-27",
        "[1, 2]",
        "[\n  1, # one\n  [2],\n]",
        "[\n# only\n]",
        '"""m\n[x]\n""\\""""""',
        "'''\n# no '\n''''",
        "{a = 1, b.c = '}'}",
        "[{a = 1}]",
    ]
)
_TABLES = st.sampled_from(
    [
        "other",
        "other.deep",
        "z",
        "mcp_servers",
        "mcp_servers.a",
        'mcp_servers."a b"',
        "mcp_servers.a.env",
        "mcp_servers.ours",
        "mcp_servers . ours.env",
        "mcp_servers.'ours'.tools",
    ]
)
_DOTTED = 'mcp_servers.a.command = "x"\nmcp_servers."ours".command = "y" # why\nmcp_servers.ours.args = []\n'
_ON_LINES = '[mcp_servers]\na = {command = "x"}\n# one line\nours = {command = "y"} # why\nb = {command = "z"}\n'


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A good text in which the servers are tables, lines, or not there at all."""
    text = _members(draw, "r")
    tables = draw(st.lists(_TABLES, unique_by=lambda table: re.sub(r"[ '\"]", "", table), max_size=6))
    style = draw(st.sampled_from(["tables", "tables", "dotted", "lines"]))
    if style != "tables":
        tables = [table for table in tables if not table.startswith("mcp_servers")]
        text += draw(_COMMENTS) + (_DOTTED if style == "dotted" else _ON_LINES)
    for table in tables:
        text += f"{draw(_COMMENTS)}{draw(_INDENTS)}[{table}]{draw(_BEHIND)}\n{_members(draw, 'k')}"
        if draw(st.integers(0, 4)) == 0:
            text += f"[[list]]\n{_members(draw, 'k')}"
    text += draw(_COMMENTS)
    if draw(st.integers(0, 4)) == 0:
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # some orders of tables are not allowed
        reject()
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + text


def _members(draw: st.DrawFn, prefix: str) -> str:
    lines = ""
    for number in range(draw(st.integers(0, 2))):
        key = draw(st.sampled_from([prefix, f'"{prefix} "', f"{prefix}.d", f"{prefix} . '#'"])).replace(
            prefix, f"{prefix}{number}"
        )
        lines += f"{draw(_COMMENTS)}{draw(_INDENTS)}{key} = {draw(_VALUES)}{draw(_BEHIND)}\n"
    return lines
