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
    {
        "path", "paths", "file", "files", "filename", "filepath", "filepaths", "args", "targetfile", "targetpath",
        "notebookpath", "newpath", "oldpath", "newfile", "oldfile", "sourcepath", "destination", "destinationpath",
        "outputpath",
    }
)  # fmt: skip
"""Without `_` and `-`, in lower case."""
_LIST_KEYS: Final = frozenset({"paths", "files", "filepaths", "args"})
"""Those whose text may be a list of files."""

_HEADER = re.compile(r"\*\*\* |diff |--- |Index: |rename |copy ")
_PATCH_MARK = re.compile(r"\*\*\* (?:Add File|Delete File|Update File|Move to): ?(.*)", re.DOTALL)
_PATCH_FRAME = re.compile(r"\*\*\* (?:Begin Patch|End Patch|End of File)\s*")
_GIT_MARK = re.compile(r"diff --git a/([^\" ]*) b/([^\" ]*)")
_GIT_NAME = re.compile(r"(?:rename|copy) (?:from|to) (.*)", re.DOTALL)
_XML_PATH = re.compile(r"<path>([^<&]*)</path>")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|[A-Za-z]:|file:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_INDENT: Final = 200
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
    if tool in ("apply_patch", "apply_diff"):
        for text in _texts(arguments):
            yield from _in_patch(text, is_patch=tool == "apply_patch")


def _in_mapping(arguments: Mapping[str, Any]) -> Iterator[str]:
    """What stands under the name of a path, at any depth."""
    for key, value in arguments.items():
        folded = key.replace("_", "").replace("-", "").lower()
        if folded in _PATH_KEYS:
            yield from _in_value(value, may_be_list=folded in _LIST_KEYS)
        else:
            yield from _in_other(value)


def _in_other(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _in_mapping(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in_other(item)


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


def _in_patch(body: str, *, is_patch: bool) -> Iterator[str]:
    """Files that a patch names: by the marks of `apply_patch`, or by the headers of a diff.

    Lines end with a newline and nothing else, as they do for the tools that apply patches. What looks like a header
    and is none that is known here makes the whole unusable, unless the body may be any text (`is_patch` False).
    """
    in_git_diff = False
    for found in _HEADER.finditer(body):
        begin = body.rfind("\n", max(0, found.start() - _LONGEST_INDENT), found.start()) + 1
        if begin == 0 and found.start() > _LONGEST_INDENT:
            begin = found.start() - _LONGEST_INDENT
        if body[begin : found.start()].strip().strip(_BLANKS):
            continue  # in the middle of a line
        end = body.find("\n", found.start())
        line = body[found.start() : end if end >= 0 else len(body)].removesuffix("\r")
        following = body[end + 1 : end + 5] if end >= 0 else ""
        if mark := _PATCH_MARK.fullmatch(line):
            yield mark[1].strip(_BLANKS)
        elif git := _GIT_MARK.fullmatch(line):
            in_git_diff = True
            yield from git.groups()
        elif line.startswith("--- ") and following == "+++ ":
            yield from _in_header(line)
            after = body.find("\n", end + 1)
            yield from _in_header(body[end + 1 : after if after >= 0 else len(body)].removesuffix("\r"))
        elif line.startswith("Index: ") and is_patch:
            yield line.removeprefix("Index: ").strip(_BLANKS)
        elif in_git_diff and (renamed := _GIT_NAME.fullmatch(line)):
            yield renamed[1].strip(_BLANKS)
        elif is_patch and line.startswith(("*** ", "diff ")) and not _PATCH_FRAME.fullmatch(line):
            raise UnusablePath("is in a patch that cannot be read")


def _in_header(line: str) -> Iterator[str]:
    name = line[4:].partition("\t")[0].strip(_BLANKS)
    if name != "/dev/null":
        yield name[2:] if name[:2] in ("a/", "b/") else name


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
