"""The system prompt: what it says, in which order, and that it never says more than the mode allows."""

from pathlib import Path

import pytest

from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.model import Group, McpRestrictions, ModeConfig, Origin, TimeWindow, ToolPattern
from modes_actor.modes.prompt import Project, system_prompt
from modes_actor.modes.rules import load_rules
from modes_actor.modes.servers import McpServer, McpServers

HERE = Origin(".roomodes", 3)
NOTHING = Project(McpServers())

READ = Group("read", HERE)
EDIT_DOCS = Group("edit", HERE, r"\.md$", "Markdown only")


def mode(
    slug: str, *groups: Group, extends: str | None = None, restrictions: McpRestrictions | None = None
) -> ModeConfig:
    return ModeConfig(
        slug=slug,
        name=slug.title(),
        source="project",
        origin=HERE,
        role_definition=f"You are {slug}.",
        groups=groups,
        when_to_use=f"For {slug}. And more.",
        custom_instructions=f"Do {slug}.",
        extends=extends,
        mcp_restrictions=restrictions,
    )


def prompt(first: ModeConfig, *others: ModeConfig, project: Project = NOTHING) -> str:
    return system_prompt(first, ModeCatalog([first, *others]), project)


def test_a_prompt_is_the_same_to_the_letter_every_time() -> None:
    """Whole, so that every change of it is seen by somebody."""
    expected = """\
You are writer.

# When this mode applies

For writer. And more.

# What you may use

- You may read, list and search files.
- You may create and change files, only those whose path matches `\\.md$` (Markdown only).
- You may not use a browser.
- You may not run commands.
- You may not use tools and resources of MCP servers.
- You may ask, finish, switch modes and start tasks.
The server enforces this: what is not allowed here is refused, however it is asked for.

# Other modes

- `coder` (Coder): For coder.

# Instructions

Do writer.
"""
    assert expected == prompt(mode("writer", READ, EDIT_DOCS), mode("coder", READ))


def test_a_mode_that_extends_another_is_shown_with_the_limits_of_both() -> None:
    """What the base denies is not offered."""
    base = mode("base", READ, EDIT_DOCS)
    own = mode("own", READ, Group("edit", HERE, "^docs/"), Group("command", HERE), extends="base")
    text = prompt(own, base)
    assert "only those whose path matches `^docs/`, only those whose path matches `\\.md$`" in text
    assert "- You may not run commands." in text


def test_a_mode_that_extends_nothing_that_exists_may_use_nothing() -> None:
    """The prompt tells what the decisions will be."""
    assert "- You may not read, list and search files." in prompt(mode("own", READ, extends="gone"))


def test_a_mode_without_a_role_has_that_of_its_base() -> None:
    """A narrower mode need not repeat who the model is."""
    own = ModeConfig(slug="own", name="Own", source="project", origin=HERE, role_definition="", extends="base")
    assert prompt(own, mode("base", READ)).startswith("You are base.")


def test_servers_and_tools_that_a_mode_may_reach_are_named() -> None:
    """Configured servers with a verdict each, and the lists as they were written."""
    restrictions = McpRestrictions(
        HERE,
        allowed_servers=("docs", "git*"),
        disallowed_servers=("github",),
        allowed_tools=(ToolPattern("docs", "search_*"),),
        disallowed_tools=(ToolPattern("*", "delete_*"),),
        window=TimeWindow("09:00-18:00", 540, 1080),
    )
    servers = {name: McpServer(name) for name in ("github", "docs", "admin")}
    text = prompt(
        mode("own", Group("mcp", HERE), restrictions=restrictions), project=Project(McpServers(servers, known=True))
    )
    lines = [line for line in text.splitlines() if line.startswith("  - ")]
    assert lines == [
        "  - Server `admin`: not allowed",
        "  - Server `docs`: allowed",
        "  - Server `github`: not allowed",
        "  - Only these servers: `docs`, `git*`",
        "  - Never these servers: `github`",
        "  - Only these tools: `mcp__docs__search_*`",
        "  - Never these tools: `mcp__*__delete_*`",
        "  - Only 09:00-18:00",
    ]


def test_a_mode_without_mcp_is_told_of_no_server() -> None:
    """What it cannot reach would only tempt it."""
    project = Project(McpServers({"secret": McpServer("secret")}, known=True))
    assert "secret" not in prompt(mode("own", READ), project=project)


def test_rules_come_last_each_under_its_source(tmp_path: Path) -> None:
    """Those of the mode before those for all."""
    (tmp_path / ".roo" / "rules-own").mkdir(parents=True)
    (tmp_path / ".roo" / "rules-own" / "a.md").write_text("Mode rule.\n")
    (tmp_path / "AGENTS.md").write_text("Agent rule.\n")
    rules = load_rules("own", project_root=tmp_path, home=tmp_path / "home").rules
    text = prompt(mode("own", READ), project=Project(McpServers(), rules))
    assert text.endswith("# Rules from .roo/rules-own/a.md\n\nMode rule.\n\n# Rules from AGENTS.md\n\nAgent rule.\n")


def test_a_long_description_of_another_mode_is_cut() -> None:
    """A hundred modes must fit into a prompt."""
    long = ModeConfig(slug="b", name="B", source="project", origin=HERE, role_definition="word " * 1000)
    [line] = [line for line in prompt(mode("a"), long).splitlines() if line.startswith("- `b`")]
    assert len(line) < 320


@pytest.mark.parametrize("built_in", builtin_modes(), ids=lambda mode: mode.slug)
def test_a_built_in_mode_has_a_prompt_that_names_the_others(built_in: ModeConfig) -> None:
    """A person would want to work with it: role, instructions, and whom to hand over to."""
    text = system_prompt(built_in, ModeCatalog(builtin_modes()), NOTHING)
    others = [other.slug for other in builtin_modes() if other.slug != built_in.slug]
    assert text.startswith(built_in.role_definition)
    assert built_in.custom_instructions is not None
    assert built_in.custom_instructions in text
    assert [slug for slug in others if f"- `{slug}`" not in text] == []
