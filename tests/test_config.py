"""The configuration: who goes before whom, what is expanded, and what is said of mistakes."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modes_actor.config import Config, ConfigError, Flags, find_project, load_config, load_effective
from modes_actor.config.commented import commented_defaults
from modes_actor.config.load import expectation, type_of
from modes_actor.config.settings import FILE_NAME, SETTINGS, value_of


class Person:
    """A home, an environment, and a configuration file where it is looked for."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / ".roo-code" / FILE_NAME
        self.file.parent.mkdir()

    def write(self, value: Any) -> Path:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        self.file.write_text(text, encoding="utf-8")
        return self.file


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Person(tmp_path)


def mistakes(flags: Flags, environment: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(flags, environment)
    return str(caught.value).splitlines()


# Precedence.

LEVELS = ("file", "environment", "flag")


@pytest.mark.parametrize("said", [LEVELS[:count] for count in range(len(LEVELS) + 1)])
def test_flags_go_before_the_environment_before_the_file_before_the_default(
    person: Person, said: tuple[str, ...]
) -> None:
    """And each value knows where it comes from."""
    if "file" in said:
        person.write('{"logging": {\n"level": "DEBUG"}}')
    environment = {"ROO_LOG_LEVEL": "ERROR"} if "environment" in said else {}
    effective = load_effective(Flags(log_level="CRITICAL" if "flag" in said else None), environment)
    expected = [
        ("INFO", "default"),
        ("DEBUG", f"{person.file}:2"),
        ("ERROR", "ROO_LOG_LEVEL"),
        ("CRITICAL", "--log-level"),
    ]
    assert (effective.config.logging.level, effective.origin("logging.level")) == expected[len(said)]


VALUES: dict[str, tuple[Any, str, Any]] = {
    "server.name": ("mine", "yours", "yours"),
    "server.version": ("2.0", "3.0", "3.0"),
    "server.description": ("A server", "Another", "Another"),
    "paths.project_root": ("/", "/usr", "/usr"),
    "paths.global_config_dir": ("/one", "/two", "/two"),
    "sessions.timeout": (1.5, "2.5", 2.5),
    "sessions.cleanup_interval": (7, "8", 8.0),
    "sessions.persistence.enabled": (False, "false", False),
    "sessions.persistence.storage_path": ("/one", "/two", "/two"),
    "logging.level": ("debug", "error", "ERROR"),
    "logging.file": ("/log", "/other", "/other"),
    "logging.format": ("json", "%(message)s", "%(message)s"),
    "limits.max_line_bytes": (1000, "2000", 2000),
}
"""Of every setting: a value in the file, one in the environment, and what that comes to."""


def test_the_table_of_settings_is_the_configuration() -> None:
    """Every field of every section is there, and each has a value in the tests."""

    def fields(value: Any, path: str) -> list[str]:
        if not isinstance(value, msgspec.Struct):
            return [path]
        names = value.__struct_fields__
        return [key for name in names for key in fields(getattr(value, name), f"{path}.{name}".lstrip("."))]

    assert list(SETTINGS) == fields(Config(), "") == list(VALUES)


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_can_be_set_in_the_file(person: Person, key: str) -> None:
    """At its place."""
    value: Any = VALUES[key][0]
    expected = value.upper() if key == "logging.level" else value
    for name in reversed(key.split(".")):
        value = {name: value}
    person.write(value)
    assert value_of(load_config(Flags(), {}), key) == expected


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_can_be_set_in_the_environment(person: Person, key: str) -> None:
    """As text, which is read as what it must be."""
    _, text, expected = VALUES[key]
    assert value_of(load_config(Flags(), {SETTINGS[key].variable: text}), key) == expected


@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS.values() if setting.flag], ids=lambda each: each.key
)
def test_a_flag_that_is_named_is_there(person: Person, setting: Any) -> None:
    """The table and the command line agree."""
    _, text, expected = VALUES[setting.key]
    flags = Flags(**{setting.flag.removeprefix("--").replace("-", "_"): text})
    assert value_of(load_config(flags, {}), setting.key) == expected


def test_an_empty_variable_counts_as_not_set(person: Person) -> None:
    """Editors pass what nobody filled in."""
    everything = {setting.variable: "" for setting in SETTINGS.values()} | {"ROO_CONFIG": ""}
    assert load_config(Flags(), everything) == load_config(Flags(), {})


def test_what_is_overruled_does_not_matter(person: Person) -> None:
    """A variable that makes no sense is no trouble where a flag says better."""
    config = load_config(Flags(project_root=str(person.home)), {"ROO_PROJECT_ROOT": "/no/such/place"})
    assert config.paths.project_root == str(person.home)


# Which file.


def test_the_file_in_the_global_directory_is_read_if_it_is_there(person: Person) -> None:
    """Wherever that directory is."""
    elsewhere = person.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / FILE_NAME).write_text('{"server": {"name": "elsewhere"}}', encoding="utf-8")
    person.write({"server": {"name": "at home"}})
    names = [
        load_config(flags, environment).server.name
        for flags, environment in (
            (Flags(), {}),
            (Flags(config_dir=str(elsewhere)), {}),
            (Flags(), {"ROO_CONFIG_DIR": "~/elsewhere"}),
        )
    ]
    assert names == ["at home", "elsewhere", "elsewhere"]


def test_a_file_that_is_named_is_read_instead(person: Person) -> None:
    """By the flag, else by the variable."""
    person.write({"server": {"name": "at home"}})
    for name in ("flag", "variable"):
        (person.home / f"{name}.json").write_text(msgspec.json.encode({"server": {"name": name}}).decode())
    environment = {"ROO_CONFIG": "${HOME}/variable.json", "HOME": str(person.home)}
    assert load_config(Flags(config="~/flag.json"), environment).server.name == "flag"
    assert load_config(Flags(), environment).server.name == "variable"


def test_comments_and_trailing_commas_are_allowed(person: Person) -> None:
    """People write configuration files."""
    person.write('// mine\n{"server": {"name": "x", /* yes */ },}\n')
    assert load_config(Flags(), {}).server.name == "x"


def test_the_example_of_the_documentation_is_understood(person: Person) -> None:
    """Every key of it."""
    person.write(
        {
            "server": {"name": "roo-modes-server", "version": "1.0.0", "description": "Modes over MCP"},
            "paths": {"project_root": None, "global_config_dir": "~/.roo-code"},
            "sessions": {
                "timeout": 3600,
                "cleanup_interval": 300,
                "persistence": {"enabled": False, "storage_path": "~/.roo-code/mcp_sessions"},
            },
            "logging": {
                "level": "INFO",
                "file": "~/.roo-code/mcp_modes_server.log",
                "format": "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
            },
        }
    )
    loaded = load_config(Flags(), {})
    assert (loaded.server.description, loaded.sessions.persistence.enabled) == ("Modes over MCP", False)
    assert (loaded.limits, loaded.sessions.timeout) == (Config().limits, 3600)


# Expansion.


def test_home_and_variables_are_expanded_in_paths(person: Person) -> None:
    """In the file, in the environment and in flags alike."""
    person.write({"sessions": {"persistence": {"storage_path": "${DATA:-~/data}/modes"}}})
    environment = {"ROO_CONFIG_DIR": "~/.roo-code", "ROO_LOG_FILE": "${HOME}/log", "HOME": str(person.home)}
    config = load_config(Flags(), environment)
    home = str(person.home)
    assert config.sessions.persistence.storage_path == f"{home}/data/modes"
    assert (config.paths.global_config_dir, config.logging.file) == (f"{home}/.roo-code", f"{home}/log")


def test_a_relative_path_in_the_file_counts_from_the_file(person: Person) -> None:
    """Who reads the file knows what is meant; the working directory is anybody's."""
    person.write({"logging": {"file": "logs/modes.log"}})
    assert load_config(Flags(), {}).logging.file == str(person.file.parent / "logs/modes.log")


def test_a_variable_that_is_not_set_is_a_mistake(person: Person) -> None:
    """As when a client does not know what another would have replaced."""
    assert mistakes(Flags(project_root="${workspaceFolder}"), {}) == [
        "--project-root is '${workspaceFolder}', but the variable workspaceFolder is not set "
        "(a client that knows it would have put its value here)"
    ]


@pytest.mark.parametrize("text", ["${}", "${a b}", "${unclosed"])
def test_what_names_no_variable_is_a_mistake(person: Person, text: str) -> None:
    """It was meant to be one."""
    [mistake] = mistakes(Flags(), {"ROO_SERVER_NAME": text})
    assert mistake.startswith(f"ROO_SERVER_NAME is '{text}', but `")


def test_a_dollar_alone_is_a_dollar(person: Person) -> None:
    """Only braces mean a variable."""
    assert load_config(Flags(), {"ROO_SERVER_NAME": "$HOME {x} $$"}).server.name == "$HOME {x} $$"


# Mistakes.


@pytest.mark.parametrize(
    ("text", "line", "mistake"),
    [
        ('{"sessions": {"timeoot": 1}}', 1, "sessions.timeoot is not a setting; did you mean sessions.timeout?"),
        ('{"timeout": 1}', 1, "timeout is not a setting; did you mean sessions.timeout?"),
        ('{\n\n"loging": {}}', 3, "loging is not a setting; did you mean logging?"),
        ('{"sessions":\n{"timeout": "1"}}', 2, "sessions.timeout is '1', but must be a number above 0"),
        ('{"sessions": {"timeout": 0}}', 1, "sessions.timeout is 0, but must be a number above 0"),
        ('{"sessions": 5}', 1, "sessions must be an object of settings, not 5"),
        (
            '{"logging": {"level": "LOUD"}}',
            1,
            "logging.level is 'LOUD', but must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
        ),
        ('{"server": {"name": null}}', 1, "server.name is null, but must be text that is not empty"),
        ('{"server": {"name": ""}}', 1, "server.name is '', but must be text that is not empty"),
        (
            '{"paths": {"global_config_dir": "/dev/null"}}',
            1,
            "paths.global_config_dir is '/dev/null', but that is not a directory",
        ),
        (
            '{"paths": {"global_config_dir": "~no-such-user/x"}}',
            1,
            "paths.global_config_dir is '~no-such-user/x', but nobody here has the home ~no-such-user: mend it, "
            "or give another path",
        ),
        ('{"server": {"description": 1}}', 1, "server.description is 1, but must be text or null"),
        (
            '{"sessions": {"persistence": {"enabled": 1}}}',
            1,
            "sessions.persistence.enabled is 1, but must be true or false",
        ),
        (
            '{"limits": {"max_line_bytes": -1}}',
            1,
            "limits.max_line_bytes is -1, but must be a whole number, at least 1",
        ),
        ("[]", 1, 'the configuration must be an object: {"sessions": {"timeout": 3600}}'),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line_and_what_was_expected(
    person: Person, text: str, line: int, mistake: str
) -> None:
    """And with what was probably meant."""
    person.write(text)
    assert mistakes(Flags(), {}) == [f"{person.file}:{line}: {mistake}"]


MEND = "Mend it, or begin anew: `modes-actor config generate` prints a file that is right"


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ('{"limits": ', ":1:12: this is", "Expecting value"),
        ("", ":1:1: this is", "Expecting value"),
        ('{\n  "ä": 1 "b"}', ":2:10: this is", "Expecting ',' delimiter"),
        ('{"a": NaN}', ": the configuration file is", "there is no NaN in JSON"),
    ],
)
def test_a_file_that_is_not_json_is_refused_as_a_whole(person: Person, text: str, place: str, why: str) -> None:
    """One line, with the place where it stops making sense, and how to get a good one."""
    person.write(text)
    assert mistakes(Flags(), {}) == [f"{person.file}{place} not JSON: {why}. {MEND}"]


def test_a_file_that_nests_too_deeply_is_refused(person: Person) -> None:
    """It ends no interpreter."""
    person.write('{"a":' * 100_000)
    [mistake] = mistakes(Flags(), {})
    assert mistake.startswith(f"{person.file}: the configuration file is not JSON: ")


def test_a_file_that_is_not_utf_8_is_refused(person: Person) -> None:
    """With the byte that is none."""
    person.file.write_bytes(b'{"server": {"name": "\xff"}}')
    assert mistakes(Flags(), {}) == [f"{person.file}: the configuration file is not UTF-8 (byte 21): save it as UTF-8"]


def test_a_directory_is_no_configuration_file(person: Person) -> None:
    """The reason is the system's own."""
    expected = f"{person.home}: the configuration file cannot be read: Is a directory"
    assert mistakes(Flags(config=str(person.home)), {}) == [expected]


@pytest.mark.parametrize("text", ["soon", "-1", "0", "inf", "nan", "1e999"])
def test_a_timeout_that_is_no_time_is_a_mistake(person: Person, text: str) -> None:
    """A session that never ends, or has ended already, is nobody's wish."""
    expected = f"ROO_SESSION_TIMEOUT is '{text}', but must be a number above 0"
    assert mistakes(Flags(), {"ROO_SESSION_TIMEOUT": text}) == [expected]


@pytest.mark.parametrize("text", ["%(nope)s", "%(asctime)", "plain words"])
def test_a_format_that_logging_does_not_understand_is_a_mistake(person: Person, text: str) -> None:
    """It would fail with the first entry."""
    [mistake] = mistakes(Flags(log_format=text), {})
    assert mistake.startswith(f"--log-format is '{text}', but it is no format of Python's logging (")


def test_all_mistakes_are_told_at_once(person: Person) -> None:
    """Those of the file in its order, then the environment's, then the flags'."""
    person.write('{"b": 1,\n"server": {"name": 5},\n"a": 1}')
    found = mistakes(Flags(log_level="LOUD"), {"ROO_PERSISTENCE": "maybe"})
    assert [line.removeprefix(f"{person.file}:").split()[0] for line in found] == [
        "1:", "2:", "3:", "ROO_PERSISTENCE", "--log-level",
    ]  # fmt: skip


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["server", "sessions", "persistence", "timeout", "level", "x"]) | st.text(), inner
            )
        ),
    )
)
def test_no_file_can_do_more_than_be_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """It loads, or it is a `ConfigError`."""
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_bytes(msgspec.json.encode(value))
    with suppress(ConfigError):
        assert isinstance(load_config(Flags(config=str(path)), {"HOME": "/"}), Config)


def test_where_there_is_no_home_only_what_needs_one_is_complained_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log was nobody's wish; the store and the modes are."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    needs = "but there is no home directory: set HOME, or give another path"
    assert mistakes(Flags(), {}) == [
        f"paths.global_config_dir is '~/.roo-code', {needs}",
        f"sessions.persistence.storage_path is '~/.roo-code/mcp_sessions', {needs}",
    ]
    config = load_config(Flags(config_dir=str(tmp_path)), {"ROO_PERSISTENCE": "false"})
    assert config.logging.file is None


# The defaults as a file.


def test_the_commented_defaults_are_the_defaults(person: Person) -> None:
    """Every setting is in the file, with a comment on it, and loading it changes nothing."""
    nothing = load_config(Flags(), {})
    person.write(commented_defaults())
    effective = load_effective(Flags(), {})
    assert (effective.config, set(effective.origins)) == (nothing, set(SETTINGS))
    for setting in SETTINGS.values():
        assert setting.variable in commented_defaults()


def test_the_commented_defaults_fit_into_a_window() -> None:
    """Long explanations are broken."""
    assert max(map(len, commented_defaults().splitlines())) <= 120


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_says_what_it_must_be(key: str) -> None:
    """In words, not in types."""
    assert expectation(type_of(key))[0].islower()
    assert "typing" not in expectation(type_of(key))


def test_what_a_variable_holds_is_not_told(person: Person, tmp_path: Path) -> None:
    """Python's own words about a bad format repeat it."""
    file = tmp_path / "config.json"
    file.write_text('{"logging": {"format": "${TOKEN}"}}', encoding="utf-8")
    (mistake,) = mistakes(Flags(config=str(file)), {"TOKEN": "a-secret"})
    assert "${TOKEN}" in mistake
    assert "a-secret" not in mistake


# The project.


@pytest.mark.parametrize("mark", [".roomodes", ".roo", ".git"])
def test_the_nearest_directory_upwards_with_a_mark_is_the_project(tmp_path: Path, mark: str) -> None:
    """Whatever is above it."""
    (tmp_path / ".git").mkdir()
    project, below = tmp_path / "project", tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    (project / mark).mkdir()
    found = find_project(Config(), below)
    assert (found.root, found.mark) == (project, mark)


def test_logging_is_not_changed_by_looking_at_a_configuration(person: Person) -> None:
    """A level is only a value here."""
    before = logging.getLogger().level
    load_config(Flags(log_level="DEBUG"), {})
    assert logging.getLogger().level == before
