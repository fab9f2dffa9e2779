"""Replacing a file: whole or not at all, with a copy, never over somebody else's change."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from modes_actor.cli import safe_files
from modes_actor.cli.safe_files import CannotWrite, remove_safely, write_safely

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="mode bits, links and signals as POSIX has them")

DIES_BEFORE_THE_END = """
import os, signal, sys
from pathlib import Path
from modes_actor.cli.safe_files import write_safely

os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
write_safely(Path(sys.argv[1]), "new", backup=False)
"""

WRITES_IN_ROUNDS = """
import sys
from pathlib import Path
from modes_actor.cli.safe_files import CannotWrite, write_safely

path, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
for line in sys.stdin:
    seen = path.read_bytes()
    print("seen", flush=True)
    sys.stdin.readline()
    try:
        write_safely(path, seen + f"{name} in round {line}".encode(), backup=True, seen=seen)
        print("written", flush=True)
    except CannotWrite as trouble:
        print(trouble, flush=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text("old")
    return path


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_a_file_is_replaced_and_the_old_one_kept(file: Path) -> None:
    """Beside it; the answer says where."""
    copy = write_safely(file, "new", backup=True)
    assert copy == file.with_name("settings.json.modes-actor.bak")
    assert contents(file.parent) == {"settings.json": "new", "settings.json.modes-actor.bak": "old"}


def test_no_copy_is_made_that_nobody_wants(file: Path) -> None:
    """And nothing else is left behind."""
    assert write_safely(file, b"new", backup=False) is None
    assert contents(file.parent) == {"settings.json": "new"}


def test_an_earlier_copy_is_never_overwritten(file: Path) -> None:
    """Each has a number of its own."""
    copies = [write_safely(file, text, backup=True) for text in ("1", "2", "3")]
    assert [copy.name.rpartition(".")[2] for copy in copies if copy] == ["bak", "bak-2", "bak-3"]
    assert [copy.read_text() for copy in copies if copy] == ["old", "1", "2"]


def test_a_new_file_is_made_with_its_directories(tmp_path: Path) -> None:
    """There is nothing to copy."""
    path = tmp_path / "a" / "b" / "new.json"
    assert write_safely(path, "é", backup=True, seen=None) is None
    assert path.read_bytes() == "é".encode()


def test_what_is_there_already_is_not_written_again(file: Path) -> None:
    """It is the same file as before, and there is no copy."""
    before = file.stat()
    assert write_safely(file, "old", backup=True) is None
    assert file.stat() == before


@pytest.mark.parametrize("seen", [b"older", None])
def test_a_file_that_is_not_what_was_seen_is_left_alone(file: Path, seen: bytes | None) -> None:
    """Somebody changed it, or made it."""
    with pytest.raises(CannotWrite, match=r"settings\.json: it was changed by somebody else meanwhile; try again$"):
        write_safely(file, "new", backup=True, seen=seen)
    assert contents(file.parent) == {"settings.json": "old"}


def test_a_change_while_we_write_is_not_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed before the end, and nothing of ours stays."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: file.write_text("theirs"))
    with pytest.raises(CannotWrite, match="changed by somebody else"):
        write_safely(file, "new", backup=True, seen=b"old")
    assert contents(file.parent) == {"settings.json": "theirs"}


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_all_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """With one sentence, and no half of anything."""

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(CannotWrite) as caught:
        write_safely(file, "new", backup=True)
    assert str(caught.value) == f"cannot write {file}: No space left on device; it is as it was"
    assert contents(file.parent) == {"settings.json": "old"}


def test_an_interruption_leaves_all_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the worst moment."""

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_safely(file, "new", backup=True)
    assert contents(file.parent) == {"settings.json": "old"}


@posix_only
def test_a_process_that_dies_leaves_the_file_as_it_was(file: Path) -> None:
    """And the next one is not hindered by what it left."""
    died = subprocess.run([sys.executable, "-c", DIES_BEFORE_THE_END, str(file)], check=False)
    assert (died.returncode, file.read_text()) == (-signal.SIGKILL, "old")
    write_safely(file, "new", backup=False)
    assert file.read_text() == "new"


@posix_only
def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    """What it points to is replaced; the copy is there, too."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.json"
    link.symlink_to(file)
    assert write_safely(link, "new", backup=True) == file.with_name("settings.json.modes-actor.bak")
    assert link.readlink() == file
    assert file.read_text() == "new"


@posix_only
def test_the_mode_bits_stay(file: Path) -> None:
    """Of the copy as well: what was private is private."""
    file.chmod(0o640)
    copy = write_safely(file, "new", backup=True)
    assert copy is not None
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, copy)] == [0o640, 0o640]


@posix_only
def test_a_new_file_is_as_readable_as_its_person_wants(tmp_path: Path) -> None:
    """As the umask says."""
    before = os.umask(0o027)
    try:
        write_safely(tmp_path / "new", "text", backup=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_file_that_is_read_only_stays_what_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renaming another over it would work, but somebody meant it. Root is told here what others would be."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(CannotWrite, match=r"it is read-only$"):
        write_safely(file, "new", backup=True)
    assert contents(file.parent) == {"settings.json": "old"}


def test_a_file_in_the_place_of_a_directory_is_in_the_way(file: Path) -> None:
    """Said in one sentence."""
    with pytest.raises(CannotWrite, match=r"^cannot write .*below: Not a directory; it is as it was$"):
        write_safely(file / "below", "new", backup=False)


@posix_only
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_only_files_are_replaced(tmp_path: Path, make: object) -> None:
    """No directory, and no pipe, which would make us wait."""
    assert callable(make)
    make(tmp_path / "odd")
    with pytest.raises(CannotWrite, match=r"it is not a regular file$"):
        write_safely(tmp_path / "odd", "new", backup=False)


def test_text_that_is_no_text_is_not_written(file: Path) -> None:
    """Half a character has no UTF-8."""
    with pytest.raises(CannotWrite, match=r"characters that UTF-8 does not have$"):
        write_safely(file, "\ud800", backup=True)
    assert contents(file.parent) == {"settings.json": "old"}


# Several of us at once.


def test_of_several_who_saw_the_same_exactly_one_writes(file: Path) -> None:
    """In every round one is told that it wrote, which is what is there; the others are told to try again."""
    file.write_text("")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES_IN_ROUNDS, str(file), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for number in range(3)
    ]
    pipes = [(writer.stdin, writer.stdout) for writer in writers if writer.stdin and writer.stdout]

    def heard() -> list[str]:
        return [reads.readline().removesuffix("\n") for _, reads in pipes]

    def said(words: str) -> None:
        for writes, _ in pipes:
            writes.write(f"{words}\n")
            writes.flush()

    assert heard() == ["ready"] * 3
    expected = ""
    refusal = f"cannot write {file}: it was changed by somebody else meanwhile; try again"
    for number in range(40):
        said(str(number))
        assert heard() == ["seen"] * 3
        said("go")
        answers = heard()
        assert sorted(answers) == sorted(["written", refusal, refusal])
        expected += f"{answers.index('written')} in round {number}\n"
        assert file.read_text() == expected
    for writes, reads in pipes:
        writes.close()
        reads.close()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert {path.name.partition(".json")[2][:17] for path in file.parent.iterdir()} == {
        "",
        ".modes-actor.bak",
        ".modes-actor.bak-",
    }


@posix_only
def test_nobody_waits_forever_for_another_writer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while it is said."""
    monkeypatch.setattr(safe_files, "LOCK_SECONDS", -1.0)
    with safe_files._alone_in(file.parent, file), pytest.raises(CannotWrite, match="writing beside it for long; try"):
        write_safely(file, "new", backup=True)
    assert contents(file.parent) == {"settings.json": "old"}


@posix_only
def test_a_file_system_without_locks_is_written_all_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some of those in a network are."""

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", fail)
    write_safely(file, "new", backup=False)
    assert contents(file.parent) == {"settings.json": "new"}


# Copies, and removing.


def test_a_copy_that_is_there_already_is_not_made_again(file: Path) -> None:
    """To and fro leaves one of each, however often; the answer says which it is."""
    names = []
    for text in ("new", "old", "new", "old", "new"):
        copy = write_safely(file, text, backup=True)
        assert copy is not None
        names.append(copy.name)
    first, second = "settings.json.modes-actor.bak", "settings.json.modes-actor.bak-2"
    assert names == [first, second, first, second, first]
    assert contents(file.parent) == {"settings.json": "new", first: "old", second: "new"}


@posix_only
def test_a_link_in_the_place_of_a_copy_is_no_copy(file: Path) -> None:
    """What it points to may change."""
    link = file.with_name("settings.json.modes-actor.bak")
    (file.parent / "other").write_text("old")
    link.symlink_to(file.parent / "other")
    copy = write_safely(file, "new", backup=True)
    assert copy == file.with_name("settings.json.modes-actor.bak-2")


def test_a_file_is_removed_if_it_is_what_was_seen(file: Path) -> None:
    """And nothing is left of it."""
    remove_safely(file, seen=b"old")
    assert contents(file.parent) == {}


def test_a_file_that_is_not_what_was_seen_is_not_removed(file: Path) -> None:
    """Somebody changed it."""
    with pytest.raises(CannotWrite, match=r"settings\.json: it was changed by somebody else meanwhile; try again$"):
        remove_safely(file, seen=b"older")
    assert contents(file.parent) == {"settings.json": "old"}


def test_a_file_that_cannot_be_removed_is_one_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as it was."""

    def fail(*arguments: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(CannotWrite) as caught:
        remove_safely(file, seen=b"old")
    assert str(caught.value) == f"cannot remove {file}: Operation not permitted; it is as it was"
