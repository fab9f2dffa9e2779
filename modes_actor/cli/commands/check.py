"""`modes-actor check`: every mistake in mode files, MCP server files and rule files, with its place."""

import errno
import os
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from modes_actor.cli.command import Command, Situation, UsageError
from modes_actor.cli.findings import Finding, Report, Rule, github_commands, json_report, sarif, shown_path, write_text
from modes_actor.modes.loader import PROJECT_FILE, Loaded, ModeLoader
from modes_actor.modes.model import Problem
from modes_actor.modes.rules import load_rules
from modes_actor.modes.servers import CONFIG_NAMES, load_servers, server_files
from modes_actor.modes.templates import suggest_restrictions

Format = Literal["text", "json", "github", "sarif"]


class CheckArguments(Struct):
    paths: list[str]
    format: Format | None = None
    strict: bool = False
    suggest: bool = False


class Checked(Struct):
    """Files that were looked at, in order, and what is wrong with them."""

    files: list[Path] = []
    problems: list[tuple[Rule, Problem]] = []

    def __iadd__(self, other: "Checked") -> "Checked":
        self.files += other.files
        self.problems += other.problems
        return self


def _check(arguments: CheckArguments, situation: Situation) -> int:
    form = _format(arguments, situation)
    checked = Checked()
    for each in _looked_at(arguments.paths, situation, suggest=arguments.suggest):
        checked += each
    report = _report(checked, situation.working_directory)
    output = situation.output
    if form == "json":
        output.json(json_report(report))
    elif form == "sarif":
        output.json(sarif(report, situation.working_directory))
    elif form == "github":
        for line in github_commands(report):
            output.line(line)
    else:
        write_text(report, output)
    return 1 if report.count("error") or (arguments.strict and report.count("warning")) else 0


def _format(arguments: CheckArguments, situation: Situation) -> Format:
    if situation.output.as_json and arguments.format not in (None, "json"):
        raise UsageError(f"--json and --format {arguments.format} exclude each other")
    return arguments.format or ("json" if situation.output.as_json else "text")


def _looked_at(words: list[str], situation: Situation, *, suggest: bool) -> Iterator[Checked]:
    config_dir = Path(situation.config.paths.global_config_dir).expanduser()
    paths = [Path(os.path.normpath(situation.working_directory / word)) for word in words]
    if missing := [why for word, path in zip(words, paths, strict=True) if (why := _why_not_there(word, path))]:
        raise UsageError("\n".join(missing))
    place = _Place(situation.project_root, config_dir, situation.home, suggest=suggest)
    if not paths:
        yield place.everything()
    for path in paths:
        if path.is_dir():
            yield _Place(path, config_dir, situation.home, suggest=suggest).project()
        elif path.name in CONFIG_NAMES:
            yield Checked([path], [("mcp-servers", problem) for problem in load_servers([path]).problems])
        elif path.name == PROJECT_FILE:
            yield _Place(path.parent, config_dir, situation.home, suggest=suggest).mode_file(path)
        else:
            yield place.mode_file(path)


def _why_not_there(word: str, path: Path) -> str | None:
    if not word:
        return "a path is empty: name a file or a directory, or none for all files that count here"
    try:
        os.stat(path)
    except FileNotFoundError:
        return f"{word} is a link that leads nowhere" if path.is_symlink() else f"there is no file or directory {word}"
    except NotADirectoryError:
        return f"there is no file or directory {word}"
    except OSError as error:
        why = "it is a link that leads back to itself" if error.errno == errno.ELOOP else error.strerror or error
        return f"{word} cannot be looked at: {why}"
    return None


class _Place:
    """A project and a person: what they would have in force together, and which files that comes from."""

    def __init__(self, root: Path, config_dir: Path, home: Path, *, suggest: bool) -> None:
        self.root = root
        self.config_dir = config_dir
        self.home = home
        self.suggest = suggest

    def everything(self) -> Checked:
        """All files that count here."""
        loader = ModeLoader(self.root, self.config_dir)
        loaded = loader.load()
        checked = self._of_files(loader.files(), loaded)
        checked += self._rules(loaded, with_own=True)
        return checked

    def project(self) -> Checked:
        """The files that come with the project."""
        loaded = ModeLoader(self.root, self.config_dir).load()
        files = [path for path in server_files(self.root, self.config_dir) if path.parent != self.config_dir]
        checked = self._of_files([self.root / PROJECT_FILE, *files], loaded)
        checked += self._rules(loaded, with_own=False)
        return checked

    def mode_file(self, path: Path) -> Checked:
        """One file of modes, as if it were the project's."""
        return self._of_files([path], ModeLoader(self.root, self.config_dir, project_file=path).load())

    def _of_files(self, files: Iterable[Path], loaded: Loaded) -> Checked:
        wanted = {str(path): path for path in files}
        of_servers = set(loaded.servers.problems)
        problems: list[tuple[Rule, Problem]] = [
            ("mcp-servers" if problem in of_servers else "mode-file", problem) for problem in loaded.catalog.problems
        ]
        if self.suggest:
            problems += [("suggestion", problem) for problem in _suggestions(loaded)]
        problems = [each for each in problems if each[1].file in wanted]
        wrong = {problem.file for _, problem in problems}
        return Checked([path for file, path in wanted.items() if file in wrong or os.path.exists(path)], problems)

    def _rules(self, loaded: Loaded, *, with_own: bool) -> Checked:
        """The rule files of all modes; the person's own only where they are wanted."""
        files: dict[Path, None] = {}
        problems: list[tuple[Rule, Problem]] = []
        for mode in loaded.catalog:
            found = load_rules(mode.slug, project_root=self.root, home=self.home)
            for source in [each.source for each in found.rules] + [each.source for each in found.problems]:
                if with_own or not source.startswith("~/"):
                    files[self._rule_file(source)] = None
            for problem in found.problems:
                if with_own or not problem.source.startswith("~/"):
                    file = str(self._rule_file(problem.source))
                    problems.append(("rules", Problem(file, 1, 1, "warning", problem.sentence.removesuffix("."))))
        return Checked(list(files), problems)

    def _rule_file(self, source: str) -> Path:
        return self.home / source[2:] if source.startswith("~/") else self.root / source


def _suggestions(loaded: Loaded) -> Iterator[Problem]:
    for mode in loaded.catalog:
        found = suggest_restrictions(mode, loaded.servers)
        if found is not None:
            how = (
                f"`modes-actor new example --restrict {found.template} --dry-run` shows restrictions that would suit it"
            )
            yield Problem(mode.origin.file, mode.origin.line or 1, 1, "info", found.reason, how)


def _report(checked: Checked, working_directory: Path) -> Report:
    """Each problem once; file by file, and in a file from top to bottom."""
    files = list(dict.fromkeys(map(str, checked.files)))
    order = {file: index for index, file in enumerate(files)}
    problems = sorted(
        dict.fromkeys(checked.problems),
        key=lambda each: (order.get(each[1].file, len(order)), each[1].line, each[1].column),
    )
    findings = [
        Finding(
            file=shown_path(problem.file, working_directory),
            line=problem.line,
            column=problem.column,
            severity=problem.severity,
            message=problem.message,
            hint=problem.hint,
            rule=rule,
        )
        for rule, problem in problems
    ]
    return Report(findings, len(files))


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="a file of modes, a file of MCP servers, or the directory of a project; none: all files that count here",
    )
    parser.add_argument("--format", choices=("text", "json", "github", "sarif"), help="how to tell (default: text)")
    parser.add_argument("--strict", action="store_true", help="warnings, too, make the exit code 1")
    parser.add_argument("--suggest", action="store_true", help="tell of modes that could be restricted better, too")


COMMAND = Command(
    description="Look for mistakes in mode files, MCP server files and rules. The exit code is 1 if there are errors.",
    examples="  modes-actor check\n"
    "  modes-actor check .roomodes --strict\n"
    "  modes-actor check --format sarif > modes.sarif",
    arguments=CheckArguments,
    add_arguments=_add_arguments,
    run=_check,
)
