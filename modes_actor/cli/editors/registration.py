"""This server in the configuration files of its clients: planned first, shown as a diff, then written.

A plan reads and never writes; `apply` writes what the plan shows, or nothing. An entry of ours is known by its command,
whatever its name; an entry of our name with another command is somebody else's, and is touched only with `force`.

What we made goes with us: a file that holds nothing but what we write into a new one is removed with its entry, and no
copy is made of it. The directory it is in stays, and so does a file that somebody else had a part in, if only as `{}`.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from modes_actor.cli.editors import json_edit
from modes_actor.cli.editors.clients import CLIENTS, Client, Place, Scope, configuration_files, entry
from modes_actor.cli.editors.diffs import unified
from modes_actor.cli.editors.json_edit import CannotEdit
from modes_actor.cli.safe_files import BACKUP_SUFFIX, remove_safely, write_safely

DEFAULT_NAME: Final = "roo-modes"
SIZE_LIMIT: Final = 64 * 1024 * 1024
"""Bytes. Clients' files that have grown for years are a tenth of that."""
_OUR_NAMES: Final = frozenset({"modes-actor", "modes_actor"})
_THEIRS: Final = frozenset({"enabled"})
"""Members of an entry that are the user's choice once they are there."""


class CannotChange(Exception):
    """A sentence for people: which file, where in it, and why not. The file is left alone."""

    def __init__(self, path: Path, trouble: CannotEdit) -> None:
        where = str(path) if trouble.line is None else f"{path}:{trouble.line}"
        super().__init__(f"{where}: {trouble.reason}")
        self.path = path


class Change(Struct, frozen=True, kw_only=True):
    """What would be done to a file."""

    path: Path
    before: str | None
    """None: there is no file."""
    after: str | None
    """None: the file is removed."""
    is_only_ours: bool = False
    """Whether there is nothing in the file but what we wrote: then nobody misses a copy."""

    @property
    def is_noop(self) -> bool:
        return self.after == (self.before or "")


class Registration(Struct, frozen=True, kw_only=True):
    """An entry of ours in a client's file; or a file that cannot be understood, with the reason."""

    client: str
    scope: Scope
    path: Path
    name: str | None = None
    command: tuple[str, ...] = ()
    """All words of it, arguments too."""
    is_ours: bool = False
    """False if only the name of the entry is."""
    problem: str | None = None


def plan_install(
    client: Client,
    scope: Scope,
    place: Place,
    words: Sequence[str],
    *,
    name: str = DEFAULT_NAME,
    force: bool = False,
) -> Change:
    """Add the server, or bring our entry up to date: what its user added to it stays.

    `words` are the command that starts it. Raises `CannotChange` or `NoSuchScope`.
    """
    path = _file_with(client, scope, place, name)
    if scope in client.project_arguments and "--project-root" not in words:
        words = [*words, "--project-root", client.project_arguments[scope]]
    value = entry(client, words)
    edit = _editor(client)
    with _of_file(path):
        text = _read(path)
        after = text or ""
        found = _entries(client, text).get(name)
        if isinstance(found, dict) and (is_ours(found) or found == found | value):
            for key, member in value.items():
                if key not in found or (key not in _THEIRS and found[key] != member):
                    after = edit.set_member(after, (*client.key_path, name, key), member)
        elif found is None or force:
            after = edit.set_member(after, (*client.key_path, name), value)
        else:
            raise CannotEdit(f"there is a server `{name}` here already that is not this one; --name or --force helps")
        return Change(path=path, before=text, after=after, is_only_ours=_is_only_ours(client, text, name))


def plan_uninstall(client: Client, path: Path, *, name: str = DEFAULT_NAME, force: bool = False) -> Change:
    """Remove the server's entry from a file of the client's, if there is one. Raises `CannotChange`."""
    with _of_file(path):
        text = _read(path)
        after: str | None = text or ""
        found = _entries(client, text)
        is_only_ours = _is_only_ours(client, text, name)
        if is_only_ours and not path.is_symlink() and not os.path.lexists(f"{path}{BACKUP_SUFFIX}"):
            after = None
        elif name in found:
            if not is_ours(found[name]) and not force:
                raise CannotEdit(f"the server `{name}` here is not this one; --force removes it all the same")
            after = _editor(client).remove_member(text or "", (*client.key_path, name))
    return Change(path=path, before=text, after=after, is_only_ours=is_only_ours)


def diff(change: Change) -> str:
    """The change as a unified diff; empty if there is none."""
    if change.is_noop:
        return ""
    old, new = ("/dev/null" if text is None else str(change.path) for text in (change.before, change.after))
    return unified(change.before or "", change.after or "", old, new)


def apply(change: Change) -> Path | None:
    """Make the change, and return where the copy of the old file is, if there was one.

    Raises `CannotWrite`, also if the file is no longer what the plan was made from.
    """
    if change.is_noop:
        return None
    before = None if change.before is None else change.before.encode()
    if change.after is not None:
        return write_safely(change.path, change.after, backup=not change.is_only_ours, seen=before)
    if before is not None:
        remove_safely(change.path, seen=before)
    return None


def registrations(place: Place, *, name: str = DEFAULT_NAME) -> list[Registration]:
    """Every entry of that name or our command, in every file of every client. Never raises for what is in a file."""
    return [
        each
        for client in CLIENTS.values()
        for scope in client.scopes
        for each in registered(client, scope, place, name)
    ]


def registered(client: Client, scope: Scope, place: Place, name: str = DEFAULT_NAME) -> list[Registration]:
    """The same of one client. Raises `NoSuchScope`."""
    return [
        each
        for path in configuration_files(client, scope, place)
        for each in _registrations_in(client, scope, path, name)
    ]


def is_ours(value: object) -> bool:
    """Whether an entry starts this server: a word of its command names it, as a program, a module or a package."""
    return any(_program(word) in _OUR_NAMES for word in _words(value))


def _registrations_in(client: Client, scope: Scope, path: Path, our_name: str) -> list[Registration]:
    try:
        entries = _entries(client, _read(path))
    except CannotEdit as trouble:
        return [Registration(client=client.name, scope=scope, path=path, problem=str(trouble))]
    return [
        Registration(
            client=client.name, scope=scope, path=path, name=name, command=_words(value), is_ours=is_ours(value)
        )
        for name, value in entries.items()
        if name == our_name or is_ours(value)
    ]


def _program(word: str) -> str:
    """The bare name in a word: of `/opt/bin/modes-actor.exe`, of `modes-actor[extra]==1.2`, of `modes-actor@latest`."""
    last = re.split(r"[/\\]", word)[-1]
    return re.split(r"[\[=<>~!@;\s]", last.removesuffix(".exe").removesuffix(".git"))[0]


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, dict):
        return ()
    command, args = value.get("command"), value.get("args")
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return tuple(word for word in words if isinstance(word, str))


def _file_with(client: Client, scope: Scope, place: Place, name: str) -> Path:
    """The file to edit: one that has the entry already, if the client reads several."""
    files = configuration_files(client, scope, place)
    for path in files if len(files) > 1 else ():
        with _of_file(path):
            if name in _entries(client, _read(path)):
                return path
    return files[0]


def _entries(client: Client, text: str | None) -> dict[str, Any]:
    value = None if text is None else _editor(client).parsed(text)
    for key in client.key_path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _is_only_ours(client: Client, text: str | None, name: str) -> bool:
    found = _entries(client, text)
    value = found.get(name)
    if (
        not isinstance(value, dict)
        or len(found) != 1
        or not is_ours(value)
        or value.keys() - entry(client, [""]).keys()
    ):
        return False
    return text == str(_editor(client).set_member("", (*client.key_path, name), value))


def _read(path: Path) -> str | None:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would make us wait
            raise CannotEdit("this is not a regular file")
        if status.st_size > SIZE_LIMIT:
            raise CannotEdit(
                f"this is larger than {SIZE_LIMIT // 1024**2} MiB, and is left alone; make it smaller first"
            )
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotEdit(f"this cannot be read: {error.strerror or error}") from error
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CannotEdit("this is not UTF-8; save the file as UTF-8 and try again", line=line) from None


def _editor(client: Client) -> ModuleType:
    if client.file_format == "json":
        return json_edit
    from modes_actor.cli.editors import toml_edit  # for one client of many

    return toml_edit


@contextmanager
def _of_file(path: Path) -> Iterator[None]:
    """What cannot be edited inside is said to be in this file."""
    try:
        yield
    except CannotEdit as trouble:
        raise CannotChange(path, trouble) from None
