"""MCP restrictions of a mode: servers and tools, allowed and not, by whatever name a client calls them. Deny wins."""

import itertools
import tracemalloc
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.decisions import Allowed, Decision, DecisionContext, Denied, Rule, decide
from modes_actor.modes.model import Group, GroupName, McpRestrictions, ModeConfig, Origin, Problem, ToolPattern
from modes_actor.modes.qualified import name_readings, pattern_readings
from modes_actor.modes.reading import read_modes
from modes_actor.modes.restrictions import restriction_problems
from modes_actor.modes.servers import McpServer, McpServers
from modes_actor.modes.templates import suggest_restrictions, templates
from modes_actor.modes.windows import make_window
from modes_actor.wire.errors import ErrorCode

HERE = Origin(".roomodes", 3)
THERE = Origin(".roomodes", 7)
ROOT = "/no/such/project"

Limits = McpRestrictions | None
Servers = McpServers | None


def limits(
    allowed: str | None = None, disallowed: str | None = None, tools: str | None = None, not_tools: str | None = None
) -> McpRestrictions:
    """Lists as words; None is no list."""

    def patterns(text: str | None) -> tuple[ToolPattern, ...] | None:
        return None if text is None else tuple(each for word in text.split() for each in pattern_readings(word))

    servers = [None if text is None else tuple(text.split()) for text in (allowed, disallowed)]
    return McpRestrictions(THERE, servers[0], servers[1], patterns(tools), patterns(not_tools))


def mode(restrictions: Limits = None, *groups: GroupName, **more: Any) -> ModeConfig:
    made = tuple(Group(name, HERE) for name in groups or ("mcp",))
    text: dict[str, Any] = {"slug": "m", "name": "M", "role_definition": "You help.", **more}
    return ModeConfig(source="project", origin=HERE, groups=made, mcp_restrictions=restrictions, **text)


def configured(*names: str, disabled: str = "", complete: bool = True) -> McpServers:
    servers = {name: McpServer(name) for name in names}
    servers |= {name: McpServer(name, default_enabled=False) for name in disabled.split()}
    return McpServers(servers, known=True, complete=complete)


def decided(asked: ModeConfig, tool: str, given: Mapping[str, Any] | None = None, servers: Servers = None) -> Decision:
    return decide(asked, tool, given, DecisionContext(ModeCatalog([asked]), ROOT, servers or McpServers()))


def may(restrictions: Limits, tool: str, servers: Servers = None, /, **arguments: Any) -> bool:
    return isinstance(decided(mode(restrictions), tool, arguments, servers), Allowed)


def may_call(restrictions: Limits, server: str, tool: str, servers: Servers = None) -> bool:
    return may(restrictions, "use_mcp_tool", servers, server_name=server, tool_name=tool)


# Every combination of 003.

SERVER_LISTS = [None, "other", "weather other", "weath*", "w?ather", ""]
TOOL_LISTS = [None, "mcp__weather__other", "mcp__other__*", "mcp__weather__get mcp__other__x", "mcp__weather__g*", ""]
NAMING_THE_SERVER = {"weather other", "weath*", "w?ather"}
NAMING_THE_TOOL = {"mcp__weather__get mcp__other__x", "mcp__weather__g*"}


@pytest.mark.parametrize("default_enabled", [True, False])
@pytest.mark.parametrize("allowed", SERVER_LISTS)
@pytest.mark.parametrize("disallowed", SERVER_LISTS)
def test_every_combination_of_lists_decides_as_003_says(
    default_enabled: bool, allowed: str | None, disallowed: str | None
) -> None:
    """For `weather`'s tool `get` under each of its names, and for its resources, which lists of tools leave alone."""
    servers = configured("weather") if default_enabled else configured(disabled="weather")
    named = allowed in NAMING_THE_SERVER
    server_is = (named or allowed is None) and disallowed not in NAMING_THE_SERVER and (default_enabled or named)
    for tools, not_tools in itertools.product(TOOL_LISTS, TOOL_LISTS):
        restrictions = limits(allowed, disallowed, tools, not_tools)
        tool_is = server_is and (tools is None or tools in NAMING_THE_TOOL) and not_tools not in NAMING_THE_TOOL
        found = {
            "use_mcp_tool": may_call(restrictions, "weather", "get", servers),
            "mcp__": may(restrictions, "mcp__weather__get", servers),
            "mcp--": may(restrictions, "mcp--weather--get", servers),
            "resource": may(restrictions, "access_mcp_resource", servers, server_name="weather", uri="weather://x"),
        }
        assert found == {"use_mcp_tool": tool_is, "mcp__": tool_is, "mcp--": tool_is, "resource": server_is}


@pytest.mark.parametrize("tool", ["use_mcp_tool", "access_mcp_resource"])
@pytest.mark.parametrize(("server", "expected"), [("weather", True), ("admin", False), ("unheard-of", True)])
def test_without_restrictions_every_server_is_allowed_that_is_not_disabled(
    tool: str, server: str, expected: bool
) -> None:
    """A server nobody configured counts as enabled."""
    servers = configured("weather", disabled="admin")
    assert expected is may(None, tool, servers, server_name=server, tool_name="get")


def test_where_the_configuration_cannot_be_read_only_named_servers_are_allowed() -> None:
    """What could not be read may have said of any server that it must be named, also of one that is configured."""
    servers = configured("weather", complete=False)
    found = [may_call(limits(allowed), name, "get", servers) for allowed in (None, "x") for name in ("weather", "x")]
    assert found == [False, False, False, True]


def test_a_denial_names_the_list_and_its_place() -> None:
    """And nothing of what the client could do instead, as nothing allows it."""
    found = decided(mode(limits("docs weather")), "use_mcp_tool", {"server_name": "admin", "tool_name": "drop"})
    assert found == Denied(
        "m",
        "use_mcp_tool",
        Rule("`allowedServers` has only 'docs', 'weather'", THERE),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        "Tool 'use_mcp_tool' cannot be used in 'm' mode. 'drop' of server 'admin' may not be used:"
        " `allowedServers` has only 'docs', 'weather'. [.roomodes:7]",
        "'drop' of server 'admin' may not be used: `allowedServers` has only 'docs', 'weather'.",
        (),
        "`allowedServers` has only 'docs', 'weather'",
    )


@pytest.mark.parametrize(("hour", "expected"), [(12, True), (20, False)])
def test_restrictions_with_a_window_close_every_server_outside_of_it(hour: int, expected: bool) -> None:
    """Whatever their lists say."""
    asked = mode(structs.replace(limits("docs"), window=make_window("09:00-18:00", None, "UTC")))
    clock = datetime(2024, 1, 1, hour, tzinfo=UTC)
    context = DecisionContext(ModeCatalog([asked]), ROOT, now=lambda: clock)
    assert expected is isinstance(decide(asked, "mcp__docs__get", {}, context), Allowed)


@pytest.mark.parametrize("allowed", [None, "admin"])
def test_the_restrictions_of_a_base_hold_for_the_mode_that_extends_it(allowed: str | None) -> None:
    """What the mode itself says cannot bring a server back."""
    base, narrow = mode(limits(None, "admin"), slug="base"), mode(limits(allowed), extends="base")
    context = DecisionContext(ModeCatalog([base, narrow]), ROOT)
    assert isinstance(decide(narrow, "mcp__admin__drop", {}, context), Denied)


@pytest.mark.parametrize("key", ["allowedServers", "allowedTools"])
def test_a_list_that_was_left_empty_is_not_as_good_as_none(key: str) -> None:
    """Whoever takes the last entry out of a YAML list leaves null behind, and did not mean to allow everything."""
    text = f"- {{slug: m, name: N, roleDefinition: R, groups: [mcp], mcpRestrictions: {{{key}: }}}}"
    (found,) = read_modes(text, file=".roomodes", source="project").modes
    assert isinstance(decided(found, "mcp__admin__drop"), Denied)


def test_restrictions_that_cannot_be_read_leave_no_mcp_of_the_base_either() -> None:
    """The reader promises that such a mode may use no MCP server at all."""
    text = "[{slug: m, name: N, extends: base, mcpRestrictions: {alowedServers: [docs]}}]"
    (narrow,) = read_modes(text, file=".roomodes", source="project").modes
    context = DecisionContext(ModeCatalog([mode(slug="base"), narrow]), ROOT)
    assert isinstance(decide(narrow, "mcp__admin__drop", {}, context), Denied)


def test_a_pattern_on_the_group_allows_none_of_its_tools() -> None:
    """The reader says so to the author; ignoring the pattern would allow everything instead."""
    asked = structs.replace(mode(), groups=(Group("mcp", HERE, r"\.md$"),))
    assert isinstance(decided(asked, "use_mcp_tool", {"server_name": "files", "path": "a.md"}), Denied)


# What the arguments call a server and a tool.


@pytest.mark.parametrize("key", ["server_name", "serverName", "server"])
@pytest.mark.parametrize("tool", ["use_mcp_tool", "access_mcp_resource"])
def test_a_server_is_known_under_every_key(key: str, tool: str) -> None:
    """Beside another one, too: every server that is named must be allowed."""
    arguments: dict[str, Any] = {"server_name": "docs", "tool_name": "get", "uri": "x"} | {key: "admin"}
    assert not may(limits(None, "admin"), tool, **arguments)


@pytest.mark.parametrize("key", ["tool_name", "toolName", "tool"])
def test_a_tool_is_known_under_every_key(key: str) -> None:
    """Beside another one, too."""
    arguments: dict[str, Any] = {"server_name": "docs", "tool_name": "get"} | {key: "drop"}
    assert not may(limits(not_tools="mcp__docs__drop"), "use_mcp_tool", **arguments)


ODD_NAMES = [["admin"], {"name": "admin"}, 5, True, [], "admin ", " admin", "admin\n", "\ufeffadmin"]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("tool", ["use_mcp_tool", "access_mcp_resource"])
def test_a_name_that_a_client_would_read_differently_is_denied(name: Any, tool: str) -> None:
    """JavaScript makes `admin` of a list with it; others trim it."""
    assert not may(limits(None, "admin"), tool, server_name=name, tool_name="get")


@pytest.mark.parametrize("name", [["drop"], "drop ", "drop\n"])
def test_a_tools_name_that_a_client_would_read_differently_is_denied(name: Any) -> None:
    """As with servers."""
    assert not may(limits(not_tools="mcp__docs__drop"), "use_mcp_tool", server_name="docs", tool_name=name)


@pytest.mark.parametrize("restrictions", [limits("docs"), limits(None, "admin"), limits(not_tools="mcp__docs__drop")])
@pytest.mark.parametrize("arguments", [{}, {"server_name": None}, {"tool_name": "get"}, {"uri": "docs://x"}])
@pytest.mark.parametrize("tool", ["use_mcp_tool", "access_mcp_resource"])
def test_without_a_server_any_restriction_denies(restrictions: Limits, arguments: dict[str, Any], tool: str) -> None:
    """It may be meant for any of them."""
    assert not may(restrictions, tool, **arguments)


@pytest.mark.parametrize("restrictions", [limits(tools="mcp__docs__get"), limits(not_tools="mcp__docs__drop")])
def test_without_a_tool_a_list_of_tools_denies(restrictions: McpRestrictions) -> None:
    """It may be meant for any of them."""
    assert not may(restrictions, "use_mcp_tool", server_name="docs")


# Qualified names.


MIXED = ["mcp__a__b--c", "mcp--a--b__c", "mcp__a--b__c", "mcp--a__b--c"]


@pytest.mark.parametrize("name", ["mcp__a__b__c", "mcp--a--b--c", *MIXED])
def test_a_name_with_several_readings_is_denied_if_the_shortest_server_is(name: str) -> None:
    """Roo takes either separator, in any mixture, and the first one that comes."""
    assert not may(limits(None, "a"), name)


@pytest.mark.parametrize(("name", "server"), [("mcp__a__b__c", "a__b"), ("mcp--a--b--c", "a--b"), (MIXED[2], "a--b")])
def test_a_name_with_several_readings_is_denied_if_the_longest_server_is(name: str, server: str) -> None:
    """A server's own name may hold the separator."""
    assert not may(limits(None, server), name)


def test_a_name_whose_readings_are_all_allowed_is_allowed() -> None:
    """Having several is no fault."""
    assert may(limits("a a__b"), "mcp__a__b__c")


def test_a_run_of_underscores_is_cut_everywhere() -> None:
    """`a_` and `_b` are good names as well."""
    assert name_readings("mcp__a___b") == [("a", "_b"), ("a_", "b")]


@pytest.mark.parametrize("server", ["my admin", "my-admin", "my.admin"])
@pytest.mark.parametrize("name", ["mcp__my_admin__drop", "mcp--my_admin--drop"])
def test_a_server_is_found_under_the_name_that_clients_make_of_it(server: str, name: str) -> None:
    """Tools may only be called by letters, digits, `_` and `-`, so clients replace the rest; Roo takes `-` for `_`."""
    restrictions = McpRestrictions(THERE, disallowed_servers=(server,))
    assert not may(restrictions, name, configured(server))


def test_a_disabled_server_is_found_under_the_name_that_clients_make_of_it() -> None:
    """Otherwise nobody would have to allow it."""
    servers = McpServers({"my admin": McpServer("my admin", default_enabled=False)}, known=True)
    assert not may(None, "mcp__my_admin__drop", servers)


@pytest.mark.parametrize("name", ["mcp__docs__drop_all", "use_mcp_tool"])
def test_a_tool_is_found_under_the_name_that_clients_make_of_it(name: str) -> None:
    """Roo calls `drop-all` when it is asked for `drop_all`, in both ways of asking."""
    restrictions = McpRestrictions(THERE, disallowed_tools=(ToolPattern("docs", "drop-all"),))
    assert not may(restrictions, name, server_name="docs", tool_name="drop_all")


def test_a_name_of_separators_only_costs_little_memory() -> None:
    """A client may send 16 MiB of them; readings that are all kept would be the square of that."""
    tracemalloc.start()
    try:
        decided(mode(limits("docs")), "mcp__" + "_" * 10_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


# Grants with wildcards.


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("mcp__github__*", ["create_issue", "get_issue"]),
        ("mcp__github__create_*", ["create_issue"]),
        ("mcp__github", ["create_issue", "get_issue"]),
        ("mcp__*", ["create_issue", "get_issue", "admin drop"]),
        ("mcp__*__get_*", ["get_issue"]),
        ("mcp__github__get_issu?", ["get_issue"]),
        ("mcp--github--get_*", ["get_issue"]),
    ],
)
def test_a_wildcard_grant_covers_what_it_says(grant: str, expected: list[str]) -> None:
    """The whole name must match."""
    calls = {"create_issue": "github", "get_issue": "github", "admin drop": "admin"}
    found = [tool for tool, server in calls.items() if may_call(limits(tools=grant), server, tool)]
    assert found == expected


@pytest.mark.parametrize("grant", ["", "github", "mcp_github_x", "mcp__", "mcp____x", "mcp__github__", "*"])
def test_a_text_that_is_no_grant_covers_nothing(grant: str) -> None:
    """The reader refuses such restrictions as a whole."""
    assert pattern_readings(grant) == ()


# Problems.


def problems(restrictions: Limits, servers: Servers = None, **more: Any) -> list[Problem]:
    return list(restriction_problems(mode(restrictions, **more), servers or McpServers()))


def warning(message: str, hint: str | None = None) -> Problem:
    return Problem(".roomodes", 7, 1, "warning", f"Mode `m`: {message}", hint)


GITHUB = McpServer("github", tools=frozenset({"get_issue"}))
KNOWN = McpServers({"github": GITHUB, "docs": McpServer("docs")}, known=True)


BOTH = "is both allowed and disallowed; it is disallowed"


@pytest.mark.parametrize(
    ("restrictions", "message"),
    [
        (limits("a", "a"), f"server 'a' {BOTH}"),
        (limits(None, "a", "mcp__a__b"), "tool 'mcp__a__b' is allowed, but its server is disallowed"),
        (limits(tools="mcp__a__b", not_tools="mcp__a__*"), f"tool 'mcp__a__b' {BOTH}"),
        (limits("a", tools="mcp__b__c"), "tool 'mcp__b__c' is allowed, but `allowedServers` does not have its server"),
    ],
)
def test_rules_that_contradict_each_other_are_warned_of(restrictions: McpRestrictions, message: str) -> None:
    """Deny wins, so it is no error."""
    assert problems(restrictions) == [warning(message)]


@pytest.mark.parametrize(
    ("restrictions", "message", "hint"),
    [
        (limits("gihub"), "server 'gihub' is not configured", "did you mean `github`?"),
        (limits(None, "zzz"), "server 'zzz' is not configured", None),
        (limits(tools="mcp__gihub__x"), "server 'gihub' is not configured", "did you mean `github`?"),
        (limits(tools="mcp__github__get_isue"), "server 'github' has no tool 'get_isue'", "did you mean `get_issue`?"),
    ],
)
def test_names_that_nobody_configured_are_warned_of(restrictions: Limits, message: str, hint: str | None) -> None:
    """With the name that was probably meant."""
    assert problems(restrictions, KNOWN) == [warning(message, hint)]


GOOD = [limits("github", tools="mcp__github__get_*"), limits("git*", tools="mcp__github__get_issue")]
GOOD += [limits("github", tools="mcp__*"), limits("github docs", None, "mcp__docs__anything")]


@pytest.mark.parametrize("restrictions", [None, *GOOD])
def test_good_restrictions_are_not_warned_of(restrictions: Limits) -> None:
    """A grant for every server is none for those that are not listed, but no mistake either."""
    assert problems(restrictions, KNOWN) == []


def test_a_grant_with_several_readings_is_fine_if_one_of_them_is() -> None:
    """Its author meant that one."""
    assert problems(limits("my__docs", tools="mcp__my__docs__get"), configured("my__docs")) == []


def test_nothing_counts_as_not_configured_where_no_configuration_is_known() -> None:
    """Nor where it cannot be read."""
    assert [problems(limits("x")), problems(limits("x"), configured("y", complete=False))] == [[], []]


def test_restrictions_without_the_group_are_warned_of() -> None:
    """They restrict nothing."""
    message = "there are `mcpRestrictions`, but the group `mcp` is not among its groups"
    assert list(restriction_problems(mode(limits("a"), "read"), McpServers())) == [warning(message)]


# Templates.

CHANGING = (
    "create_issue write_file update_row edit_file delete_repo remove_user move_file rename_file push_files merge_pr"
)
CHANGING += " post_message put_object set_value add_comment insert_row drop_table execute_sql run_query send_mail"
CHANGING += " git_push git_add git_commit slack_post_message kv_set kv_put file_move pr_merge sql_execute row_insert"
CHANGING += " table_drop mail_send file_rename shell_run replace_text modify_file save_note patch_object truncate_table"
CHANGING += " createIssue fileWrite repo-delete Delete_Repo DELETE"
NETWORK = "fetch_url http_get download_file upload_file web_search navigate browse_page browser_navigate send_mail"
NETWORK += " url_fetch puppeteer_navigate brave_web_search search_web file_download scrape_url crawl_site FetchUrl"
ADMIN = "admin_users user_admin grant_role revoke_role drop_table delete_user role_grant user_delete Admin_Users"


SAID = {"read-only": CHANGING, "no-network": NETWORK, "no-admin": ADMIN}


@pytest.mark.parametrize(("template", "tool"), [(name, tool) for name, said in SAID.items() for tool in said.split()])
def test_a_template_refuses_the_tools_that_it_says(template: str, tool: str) -> None:
    """On a server whose name says nothing; wherever in the tool's name the word is."""
    assert not may_call(templates()[template].restrictions, "thing", tool)


@pytest.mark.parametrize(
    ("template", "server"),
    [("no-network", name) for name in ("fetch", "playwright", "brave-search", "slack", "Fetch", "WebSearch", "gmail")]
    + [("no-admin", name) for name in ("admin", "db-admin", "Admin-Panel")]
    + [("docs-only", name) for name in ("github", "filesystem", "admin", "")]
    + [("none", name) for name in ("docs", "github", "")],
)
def test_a_template_refuses_the_servers_that_it_says(template: str, server: str) -> None:
    """For their tools and for their resources."""
    restrictions = templates()[template].restrictions
    resource = may(restrictions, "access_mcp_resource", server_name=server, uri="x")
    assert [may_call(restrictions, server, "get"), resource] == [False, False]


REST = "read-only/github/get_issue read-only/files/list_directory no-network/files/write_file"
REST += " docs-only/context7/get_docs no-admin/github/create_issue"


@pytest.mark.parametrize("call", REST.split())
def test_a_template_leaves_the_rest_alone(call: str) -> None:
    """One that refuses everything is `none`."""
    template, server, tool = call.split("/")
    assert may_call(templates()[template].restrictions, server, tool)


def suggested(asked: ModeConfig, servers: Servers = None) -> str | None:
    found = suggest_restrictions(asked, servers or McpServers())
    return found.template if found is not None else None


def test_a_suggestion_suits_the_mode() -> None:
    """Read-only for one that changes nothing here; none where there is nothing to restrict."""
    assert {each.slug: suggested(each) for each in builtin_modes()} == {
        "code": None,
        "architect": "read-only",
        "ask": "read-only",
        "debug": None,
        "orchestrator": None,
    }


def test_a_mode_with_restrictions_gets_no_suggestion() -> None:
    """Somebody has thought about it."""
    assert suggested(mode(limits())) is None


@pytest.mark.parametrize("server", ["admin", "Admin-Panel", "db-ADMIN"])
def test_a_server_that_leads_to_a_suggestion_is_refused_by_it(server: str) -> None:
    """Otherwise the suggestion would be an empty promise."""
    found = suggest_restrictions(mode(None, "mcp", "edit", "command"), configured(server))
    assert found is not None
    assert not may_call(found.restrictions, server, "get")


def test_a_server_that_is_configured_is_not_allowed_by_one_that_is_spelt_like_it() -> None:
    """Each of them is meant by its own name; only a name that nobody configured may be a client's spelling."""
    servers = configured("git_hub", "gitHub")
    found = [may_call(limits("git_hub"), name, "get", servers) for name in ("git_hub", "gitHub", "git-hub")]
    assert found == [True, False, True]
