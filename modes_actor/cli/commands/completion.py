"""`modes-actor completion`: a script for a shell, which asks `completion suggest` whenever somebody presses Tab."""

import argparse
import logging
import shlex
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from modes_actor.cli.command import Command, Situation, UsageError
from modes_actor.cli.suggestions import SHELLS, Suggestions, suggest
from modes_actor.config import Flags

SUGGEST: Final = "suggest"
"""In the place of a shell: what the scripts call, as `completion suggest SHELL -- WORDS`."""
_DESCRIPTION_LENGTH: Final = 80

# A line of `suggest` is a value, for zsh and fish with its description, or what the shell itself is to complete:
# `:files`, `:directories` or `:commands`.

_BASH: Final = r"""# Completions of modes-actor for bash.
_modes_actor() {
    local line program=${COMP_WORDS[0]/#\~\//$HOME/}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default 2>/dev/null ;;
            :directories) compopt -o dirnames 2>/dev/null ;;
            :commands)
                while IFS= read -r line; do
                    COMPREPLY+=("$line")
                done < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)
                ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <("$program" completion suggest bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _modes_actor modes-actor
"""

_ZSH: Final = r"""#compdef modes-actor
# Completions of modes-actor for zsh.
_modes-actor() {
    local line program=${${(Q)words[1]}/#\~\//$HOME/}
    local -a lines values
    lines=("${(@f)$("$program" completion suggest zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    compset -P '--*='
    for line in $lines; do
        case $line in
            :files) _files ;;
            :directories) _files -/ ;;
            :commands) _command_names -e ;;
            ?*) values+=("$line") ;;
        esac
    done
    if (( $#values )); then
        _describe -t values value values
    fi
}
if [[ $funcstack[1] == _modes-actor ]]; then
    _modes-actor "$@"
else
    compdef _modes-actor modes-actor
fi
"""

_FISH: Final = r"""# Completions of modes-actor for fish.
function __modes_actor_suggest
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    type -q -- $program; or return
    set -e words[1]
    set -l prefix (string match -r -- '^--[^=]*=' $current)
    set -l begun (string replace -r -- '^--[^=]*=' '' $current)
    for line in ($program completion suggest fish -- $words "$current" 2>/dev/null)
        switch $line
            case :files
                for path in (__fish_complete_path "$begun")
                    echo "$prefix$path"
                end
            case :directories
                for path in (__fish_complete_directories "$begun" '')
                    echo "$prefix$path"
                end
            case :commands
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c modes-actor -f -a '(__modes_actor_suggest)'
"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


class CompletionArguments(Struct):
    shell: str
    words: list[str] = []


class Script(Struct, frozen=True):
    shell: str
    script: str


def _completion(arguments: CompletionArguments, situation: Situation) -> int:
    output = situation.output
    if arguments.shell == SUGGEST:
        _suggest_quietly(arguments.words, situation)
        return 0
    if arguments.words:
        raise UsageError(f"completion takes no `{arguments.words[0]}` behind the shell")
    if output.as_json:
        output.json(Script(arguments.shell, SCRIPTS[arguments.shell]))
    else:
        output.line(SCRIPTS[arguments.shell].rstrip("\n"))
    return 0


def _suggest_quietly(words: Sequence[str], situation: Situation) -> None:
    """Whatever is wrong, a person who presses Tab in the middle of a line does not want to read about it."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        shell, *typed = words
        suggestions = suggest(_joined(typed, shell), lambda flags: _elsewhere(flags, situation))
        if situation.output.as_json:
            situation.output.json(suggestions)
        else:
            for line in lines(suggestions, shell, typed[-1] if typed else ""):
                situation.output.line(line)
    except Exception as error:
        logging.getLogger(__name__).debug("no suggestions: %s", error)
    finally:
        logging.disable(disabled)


def lines(suggestions: Suggestions, shell: str, current: str) -> list[str]:
    """As the scripts read them. `current` is the last word as the shell sees it."""
    found = []
    for each in suggestions.found:
        description = " ".join(each.description.split())
        if len(description) > _DESCRIPTION_LENGTH:
            description = f"{description[:_DESCRIPTION_LENGTH]}…"
        if shell == "zsh":
            value = each.value.replace("\\", "\\\\").replace(":", "\\:")
            found.append(f"{value}:{description}" if description else value)
        elif shell == "fish":
            found.append(f"{suggestions.prefix}{each.value}\t{description}".rstrip("\t"))
        else:
            # bash usually takes what is behind a `=` for a word of its own.
            prefix = suggestions.prefix if current.startswith("--") else ""
            found.append(f"{prefix}{each.value}")
    return found if suggestions.kind is None else [*found, f":{suggestions.kind}"]


def _joined(words: Sequence[str], shell: str) -> list[str]:
    """The words as a command would get them: bash leaves the quotes, and makes three words of `--mode=code`."""
    if shell != "bash":
        return list(words)
    joined: list[str] = []
    follows = False
    for word in words:
        is_sign = word == "=" and bool(joined) and joined[-1].startswith("--")
        if is_sign or follows:
            joined[-1] += _unquoted(word)
        else:
            joined.append(_unquoted(word))
        follows = is_sign
    return joined


def _unquoted(word: str) -> str:
    for missing in ("", '"', "'"):  # the last word may end in the middle of a quotation
        try:
            return "".join(shlex.split(word + missing))
        except ValueError:
            continue
    return word.rstrip("\\")


def _elsewhere(flags: Flags, situation: Situation) -> Situation:
    """Where the command that is being typed would run."""
    return Situation(
        flags,
        situation.output,
        environment=situation.environment,
        working_directory=situation.working_directory,
        home=situation.home,
    )


def _shell(text: str) -> str:
    if text not in (*SHELLS, SUGGEST):
        raise argparse.ArgumentTypeError(f"there are completions for {', '.join(SHELLS)}, not for {text!r}")
    return text


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", type=_shell, help=f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    words = parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    words.required = False  # else whoever forgets the shell is told of it


COMMAND = Command(
    description="Print a script that completes commands, options, modes, sessions and files when you press Tab.",
    examples="""\
  to have it in every new shell:
  bash:  echo 'eval "$(modes-actor completion bash)"' >> ~/.bashrc
  zsh:   echo 'source <(modes-actor completion zsh)' >> ~/.zshrc    # below compinit
  fish:  modes-actor completion fish > ~/.config/fish/completions/modes-actor.fish""",
    arguments=CompletionArguments,
    add_arguments=_add_arguments,
    run=_completion,
)
