"""`modes-actor doctor`: looks for what could be wrong with the installation, and says how to mend it."""

from collections.abc import Iterable, Sequence
from typing import Final

from modes_actor.cli.checkup import contents, installation, surroundings
from modes_actor.cli.checkup.finding import Check, Finding, Status, counted
from modes_actor.cli.command import Command, NoArguments, Situation
from modes_actor.cli.output import Output, Style, Styled
from modes_actor.config import ConfigError


def _store(situation: Situation) -> Iterable[Finding]:
    from modes_actor.cli.checkup.store import store  # not every Python has SQLite, and doctor is to say so

    return store(situation)


def _leftovers(situation: Situation) -> Iterable[Finding]:
    from modes_actor.cli.checkup.store import leftovers

    return leftovers(situation)


CHECKS: Final[dict[str, Check]] = {
    "python": installation.python,
    "packages": installation.packages,
    "sqlite": installation.sqlite,
    "command": installation.command,
    "configuration": surroundings.configuration,
    "project": surroundings.project,
    "global": surroundings.global_directory,
    "storage": surroundings.storage,
    "log": surroundings.log,
    "disk": surroundings.disk,
    "modes": contents.modes,
    "servers": contents.servers,
    "clients": contents.clients,
    "store": _store,
    "leftovers": _leftovers,
}
_MARKS: Final[dict[Status, tuple[str, Style]]] = {
    "ok": ("✓", "good"),
    "note": ("–", "dim"),
    "warning": ("!", "warn"),
    "error": ("✗", "bad"),
}


def _doctor(arguments: NoArguments, situation: Situation) -> int:
    findings = look(situation, CHECKS)
    if situation.output.as_json:
        situation.output.json(findings)
    else:
        _show(findings, situation.output)
    return 1 if any(finding.status == "error" for finding in findings) else 0


def look(situation: Situation, checks: dict[str, Check]) -> list[Finding]:
    """What all of them find. One that fails does not keep the others from looking."""
    findings: list[Finding] = []
    left_out: list[str] = []
    for name, check in checks.items():
        try:
            findings += check(situation)
        except ConfigError:
            left_out.append(name)  # the check of the configuration has said why
        except Exception as bug:
            message = f"This could not be looked at ({type(bug).__name__}: {' '.join(str(bug).split())})"
            findings.append(Finding(name, "error", message, "Please report it"))
    if left_out:
        message = f"Not looked at, because the configuration cannot be used: {', '.join(left_out)}"
        findings.append(Finding("configuration", "note", message))
    return findings


def _show(findings: Sequence[Finding], output: Output) -> None:
    width = max(map(len, CHECKS))
    for finding in findings:
        fix = "" if finding.fix is None else f". {finding.fix}."
        output.line(Styled(*_MARKS[finding.status]), f" {finding.check:<{width}}  {finding.message}{fix}")
    wrong = [
        counted(number, status)
        for status in ("error", "warning")
        if (number := sum(finding.status == status for finding in findings))
    ]
    output.line(f"{' and '.join(wrong)} found." if wrong else "Nothing is wrong.")


COMMAND = Command(
    description="Look for what could be wrong with the installation, and say how to mend it. Nothing is changed.\n"
    "The exit code is 1 if there is an error, else 0.",
    examples="  modes-actor doctor\n  modes-actor doctor --json --project-root ~/project",
    run=_doctor,
)
