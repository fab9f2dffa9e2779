"""The files that a tool's arguments name, and where in the project each of them really is.

Promises: a path is judged by where it leads, links and missing parents resolved, never by how it is spelt; what cannot
be resolved with certainty is unusable; nothing but `UnusablePath` is raised.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

FILE_LIMIT: Final = 1_000
"""Files that one tool call may name."""

_PATH_KEYS: Final = frozenset(
    {"path", "filepath", "file", "filename", "paths", "files", "filepaths", "args", "targetfile", "notebookpath"}
)
"""Without underscores, in lower case."""
_LIST_KEYS: Final = frozenset({"paths", "files", "filepaths", "args"})
"""Those whose text may be a list of files."""
_DIFF_KEYS: Final = ("diff", "args")

_PATCH_MARK = re.compile(r"[\s\ufeff]*\*\*\* (?:Add File|Delete File|Update File|Move to): ?(.*)", re.DOTALL)
_GIT_MARK = re.compile(r"diff --git a/(.*) b/(.*)", re.DOTALL)
_GIT_NAME = re.compile(r"(?:rename|copy) (?:from|to) (.*)", re.DOTALL)
_XML_PATH = re.compile(r"<path>([^<&]*)</path>")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|[A-Za-z]:|file:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BLANKS: Final = " \t\ufeff"


class UnusablePath(Exception):
    """Why a path is refused whatever the mode; the words follow on the path itself."""


class PathMemory:
    """Resolves paths against one project root, and remembers them: for one batch, no longer. Links change."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._known: dict[str, str | UnusablePath] = {}

    def resolve(self, path: str) -> str:
        """The path relative to the root, with `/` between its parts. Raises `UnusablePath`."""
        found = self._known.get(path)
        if found is None:
            try:
                found = _resolve(path, self._root)
            except UnusablePath as unusable:
                found = unusable
            except (OSError, ValueError):
                found = UnusablePath("cannot be resolved")
            self._known[path] = found
        if isinstance(found, UnusablePath):
            raise found
        return found


def files_named(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Every path among a tool's arguments, as it is spelt. Raises `UnusablePath` for what is in a path's place."""
    found: list[str] = []
    for path in _paths(tool, arguments):
        found.append(path)
        if len(found) > FILE_LIMIT:
            raise UnusablePath(f"is one of more than {FILE_LIMIT:,} files")
    return list(dict.fromkeys(found))


def _paths(tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    yield from _in_mapping(arguments)
    if tool == "apply_patch":
        for text in _texts(arguments):
            yield from _in_patch(text)
    elif tool == "apply_diff":
        for key in _DIFF_KEYS:
            for text in _texts(arguments.get(key)):
                yield from _in_patch(text)


def _in_mapping(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, value in arguments.items():
        folded = key.replace("_", "").lower()
        if folded in _PATH_KEYS:
            yield from _in_value(value, may_be_list=folded in _LIST_KEYS)


def _in_value(value: Any, *, may_be_list: bool) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, str):
        yield from _in_text(value) if may_be_list else (value,)
    elif isinstance(value, Mapping):
        named = list(_in_mapping(value))
        if value and not named:
            raise UnusablePath("names no file where a file should be")
        yield from named
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in_value(item, may_be_list=False)
    else:
        raise UnusablePath("is no text")


def _in_text(text: str) -> Iterator[str]:
    """A list of files that came as text: JSON, the older XML form, or one path after all."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            yield from _in_value(msgspec.json.decode(text), may_be_list=False)
        except (ValueError, RecursionError):
            raise UnusablePath("is in a list that cannot be read") from None
    elif "<" in text:
        found = _XML_PATH.findall(text)
        # Only the plain form is sure to be read here as the tool will read it.
        if not found or text.count("<path") != len(found) or "<!" in text:
            raise UnusablePath("is in a list that cannot be read")
        yield from found
    else:
        yield text


def _texts(value: Any) -> Iterator[str]:
    """All text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _in_patch(body: str) -> Iterator[str]:
    """Files that a patch names: by the marks of `apply_patch`, or by the headers of a diff.

    Lines end with a newline and nothing else, as they do for the tools that apply patches.
    """
    lines = [line.removesuffix("\r") for line in body.split("\n")]
    in_git_diff = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if mark := _PATCH_MARK.match(line):
            yield mark[1].strip(_BLANKS)
        elif git := _GIT_MARK.fullmatch(line):
            in_git_diff = True
            yield from git.groups()
        elif line.startswith("--- ") and following.startswith("+++ "):
            for header in (line, following):
                name = header[4:].partition("\t")[0].strip(_BLANKS)
                if name != "/dev/null":
                    yield name[2:] if name[:2] in ("a/", "b/") else name
        elif in_git_diff and (renamed := _GIT_NAME.fullmatch(line)):
            yield renamed[1].strip(_BLANKS)


def _resolve(path: str, root: str) -> str:
    if not path:
        raise UnusablePath("is empty")
    if _CONTROL.search(path):
        raise UnusablePath("has control characters in it")
    if path != path.strip() or path != path.strip(_BLANKS):
        raise UnusablePath("begins or ends with a space")
    if sys.platform == "win32":
        path = path.replace("\\", "/")
        if ":" in path[2:] or any(part.endswith((".", " ")) and part.strip(".") for part in path.split("/")):
            raise UnusablePath("means another file on Windows")
    elif "\\" in path:
        raise UnusablePath("has a backslash in it")
    elif _SCHEME.match(path):
        raise UnusablePath("begins with a drive or a scheme")
    if path.startswith("//"):
        raise UnusablePath("is on another machine")
    if path.startswith("~"):
        raise UnusablePath("begins with `~`, which tools understand differently")
    if path.endswith(("/", "/.", "/..")):
        raise UnusablePath("is a directory")
    if (plain := _without_links(path, root)) is not None:
        return plain
    joined = os.path.join(root, path)
    resolved = _real(joined)
    if ".." in path and resolved != _real(os.path.normpath(joined)):
        # The system goes up from where a link leads, some tools from where it stands.
        raise UnusablePath("goes up from a link, which tools understand differently")
    if os.path.commonpath((root, resolved)) != root:
        raise UnusablePath("is outside the project")
    if os.path.isdir(resolved):
        raise UnusablePath("is a directory")
    return os.path.relpath(resolved, root).replace(os.sep, "/")


def _without_links(path: str, root: str) -> str | None:
    """The path itself, if it goes down from the root and meets no link: nearly always, and several times as fast.

    None if it has to be resolved after all.
    """
    parts = path.split("/")
    if not parts[0] or "." in parts or ".." in parts or "" in parts or sys.platform == "win32":
        return None
    here = root
    for part in parts:
        here = f"{here}/{part}"
        try:
            mode = os.lstat(here).st_mode
        except FileNotFoundError:
            return path  # what is not there has no links in it
        if stat.S_ISLNK(mode):
            return None
    if stat.S_ISDIR(mode):
        raise UnusablePath("is a directory")
    return path


def _real(path: str) -> str:
    """The path without links; its end may be missing. Raises OSError for links that lead in a circle."""
    try:
        return os.path.realpath(path, strict=True)
    except FileNotFoundError:
        parent, name = os.path.split(path)
        if os.path.islink(path):  # to what is not there yet: that is where a tool would put it
            return _real(os.path.join(parent, os.readlink(path)))
        if name in ("", ".", "..") or parent == path:
            return os.path.realpath(path)
        return os.path.join(_real(parent), name)
