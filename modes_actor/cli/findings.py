"""What `check` found, in the forms that people, continuous integration and code hosts read.

Promises: one finding is one line of text, whatever is in it; paths below the working directory are shown relative to
it. Where findings come from is not known here.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct, field

from modes_actor import __version__
from modes_actor.cli.output import Output, Style, Styled
from modes_actor.modes.model import Severity

Rule = Literal["mode-file", "mcp-servers", "rules", "suggestion"]

RULES: Final[dict[Rule, str]] = {
    "mode-file": "Mistakes in files of modes",
    "mcp-servers": "Mistakes in files that configure MCP servers",
    "rules": "Rule files that are left out, in part or whole",
    "suggestion": "Modes that could be restricted better",
}
"""Each kind of finding, by a name that stays."""

_STYLES: Final[dict[Severity, Style]] = {"error": "bad", "warning": "warn", "info": "dim"}


class Finding(Struct, frozen=True):
    """Something wrong in a file. Lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    hint: str | None
    rule: Rule

    @property
    def sentence(self) -> str:
        return self.message + (f" ({self.hint})" if self.hint else "")


class Report(Struct, frozen=True):
    """Everything that was found, and how much was looked at."""

    findings: list[Finding]
    files: int

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def summary(self) -> str:
        where = _counted(self.files, "file")
        counts = [
            _counted(self.count("error"), "error"),
            _counted(self.count("warning"), "warning"),
            _counted(self.count("info"), "remark"),
        ]
        told = ", ".join(count for count in counts if not count.startswith("0 "))
        if not self.files:
            return "Nothing to check: there are no mode files, MCP servers or rules."
        return f"{told} in {where}." if told else f"No problems in {where}."


def shown_path(path: str | PurePath, working_directory: Path) -> str:
    """Relative, if it is below the working directory."""
    pure = PurePath(path)
    return str(pure.relative_to(working_directory) if pure.is_relative_to(working_directory) else pure)


# For people.


def write_text(report: Report, output: Output) -> None:
    for finding in report.findings:
        place = f"{finding.file}:{finding.line}:{finding.column}:"
        hint = f" ({finding.hint})" if finding.hint else ""
        output.line(
            Styled(_on_one_line(place), "strong"),
            " ",
            Styled(f"{finding.severity}:", _STYLES[finding.severity]),
            " ",
            _on_one_line(finding.message),
            Styled(_on_one_line(hint), "dim"),
        )
    is_good = not report.count("error") and not report.count("warning")
    output.line(Styled(report.summary(), "good" if is_good else "strong"))


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# For programs.


class JsonReport(Struct):
    problems: Sequence[Finding]
    files: int
    errors: int
    warnings: int
    infos: int


def json_report(report: Report) -> JsonReport:
    counts = (report.count("error"), report.count("warning"), report.count("info"))
    return JsonReport(report.findings, report.files, *counts)


# For GitHub's runners: a line each, which becomes an annotation of the file.

_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}
_IN_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github_commands(report: Report) -> Iterable[str]:
    for finding in report.findings:
        file = PurePath(finding.file).as_posix().translate(_IN_PROPERTY)
        place = f"file={file},line={finding.line},col={finding.column}"
        yield f"::{_COMMANDS[finding.severity]} {place}::{finding.sentence.translate(_IN_DATA)}"


# For code scanning: SARIF 2.1.0.

_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_ROOT: Final = "%SRCROOT%"


class Text(Struct):
    text: str


class ArtifactLocation(Struct, rename="camel", omit_defaults=True):
    uri: str
    uri_base_id: str | None = None


class Region(Struct, rename="camel"):
    start_line: int
    start_column: int


class PhysicalLocation(Struct, rename="camel"):
    artifact_location: ArtifactLocation
    region: Region


class Location(Struct, rename="camel"):
    physical_location: PhysicalLocation


class Result(Struct, rename="camel"):
    rule_id: str
    rule_index: int
    level: str
    message: Text
    locations: list[Location]


class RuleDescription(Struct, rename="camel"):
    id: str
    short_description: Text


class Driver(Struct):
    name: str
    version: str
    rules: list[RuleDescription]


class Tool(Struct):
    driver: Driver


class Run(Struct, rename="camel"):
    tool: Tool
    original_uri_base_ids: dict[str, ArtifactLocation]
    column_kind: str
    results: list[Result]


class Sarif(Struct, kw_only=True):
    schema: str = field(
        name="$schema",
        default="https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    )
    version: str = "2.1.0"
    runs: list[Run]


def sarif(report: Report, working_directory: Path) -> Sarif:
    names = list(RULES)
    rules = [RuleDescription(name, Text(text)) for name, text in RULES.items()]
    results = [
        Result(
            rule_id=finding.rule,
            rule_index=names.index(finding.rule),
            level=_LEVELS[finding.severity],
            message=Text(finding.sentence),
            locations=[Location(PhysicalLocation(_artifact(finding.file), Region(finding.line, finding.column)))],
        )
        for finding in report.findings
    ]
    root = ArtifactLocation(working_directory.as_uri().rstrip("/") + "/")
    tool = Tool(Driver("modes-actor", __version__, rules))
    return Sarif(runs=[Run(tool, {_ROOT: root}, "unicodeCodePoints", results)])


def _artifact(file: str) -> ArtifactLocation:
    path = PurePath(file)
    if path.is_absolute():
        return ArtifactLocation(path.as_uri())
    return ArtifactLocation(quote(os.fsencode(path.as_posix())), _ROOT)
