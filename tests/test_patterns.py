"""The patterns of `fileRegex`: they mean what they mean in JavaScript, are refused where they do not, and end in time.

Every row of the first two tables was held against `new RegExp(pattern).test(path)` in Node.js 24.
"""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.modes.patterns import LONGEST, LONGEST_PATH, BadPattern, FilePattern

REPEATABLE = settings(derandomize=True, database=None, deadline=None)

# Pattern, paths that it is found in, paths that it is not found in.
MEANINGS: list[tuple[str, list[str], list[str]]] = [
    # as mode files have them
    (r"\.md$", ["a.md", "docs/a.md"], ["a.mdx", "amd", "a.md\n", "a.MD"]),
    (r"\.(js|ts)x?$", ["a.js", "a.tsx"], ["a.jsy", "ajs"]),
    (r"^docs\/.*\.md$", ["docs/a.md", "docs/b/a.md"], ["src/docs/a.md", "docs/a\nb.md"]),
    (r"(?:^|/)(?!node_modules/)[\w-]+\.json$", ["a.json", "x/a-b.json"], [".json"]),
    ("", ["", "a"], []),
    # anchors and dots
    ("^a$", ["a"], ["a\n", "\na", "ba"]),
    ("^.$", ["a", "é", "\x85"], ["\n", "\r", "\u2028", "\u2029", "", "😀"]),
    ("^..$", ["😀"], ["é"]),
    (r"^\ud83d", ["😀"], ["a"]),
    # classes
    (r"^\d$", ["7"], ["٧", "a"]),
    (r"^\w$", ["_", "a", "7"], ["é", "-"]),
    (r"^\s$", ["\ufeff", "\xa0", "\v", "\u3000"], ["\x85", "\x1c", "a"]),
    (r"^\S$", ["\x85", "a"], ["\ufeff", " "]),
    (r"\bé", ["aé"], ["é", " é"]),
    (r"\B", ["", "ab"], ["a"]),
    ("^[^]$", ["a", "\n"], [""]),
    ("[]", [], ["", "a", "[]"]),
    ("^[[a]$", ["[", "a"], ["]"]),
    ("^[[:alpha:]]$", [":]", "a]"], ["a", "b]"]),
    ("^[a&&b]$", ["&", "a"], ["c"]),
    ("^[*--&&a||b~~]$", ["+", "-", "&", "a", "|", "~"], [".", "e"]),
    (r"^[a\-c]$", ["-", "a", "c"], ["b", "\\"]),
    (r"^[a-\d]$", ["a", "-", "5"], ["b"]),
    (r"^[\w-.]$", ["-", "."], ["/"]),
    (r"^[\b]$", ["\b"], ["b", ""]),
    (r"^[\0-\x01]$", ["\0", "\x01"], ["0"]),
    (r"^[\]\\]$", ["]", "\\"], ["["]),
    # braces and brackets that stand for themselves
    ("^]$", ["]"], []),
    ("^a}$", ["a}"], []),
    ("^a{$", ["a{"], []),
    ("^a{,2}$", ["a{,2}"], ["aa"]),
    ("^a{e<=1}$", ["a{e<=1}"], ["a", "b"]),
    ("^a{2}$", ["aa"], ["a", "a{2}"]),
    ("^a{1,}?$", ["aaa"], [""]),
    ("^a{0,99999999999999999999}$", ["", "aaa"], ["b"]),
    # escapes
    (r"^\/\-\_\a\A\Z\G\e$", ["/-_aAZGe"], [""]),
    (r"^\p{L}$", ["p{L}"], ["a"]),
    (r"^\x4\x41$", ["x4A"], []),
    (r"^\u004\u0041$", ["u004A"], []),
    (r"^\u{3}$", ["uuu"], ["\x03"]),
    (r"^\cA\ca$", ["\x01\x01"], []),
    (r"^\c1$", ["\\c1"], []),
    (r"^[\c1]$", ["\x11"], ["c", "1", "\\"]),
    (r"^[\c]$", ["\\", "c"], []),
    (r"^\0$", ["\0"], ["0"]),
    (r"^\101\8\400$", ["A8 0"], []),
    (r"^\t\n\v\f\r$", ["\t\n\v\f\r"], []),
    (r"^\k<n>$", ["k<n>"], []),
    # groups, lookarounds, repetitions
    ("^(?<year>a)(?<$b>b)$", ["ab"], []),
    ("(?<=a)b", ["ab"], ["bb"]),
    ("(?<!a+)b", ["b"], ["aab"]),
    ("^(?=a)*b", ["b", "b"], ["ab"]),
    ("^(?!a){1}.", ["b"], ["a"]),
    ("^(?:a*)*$", ["", "aaa"], ["b"]),
    ("^a??b*?$", ["", "ab"], ["ba"]),
    # references
    (r"^(a|b)\1$", ["aa", "bb"], ["ab", "a"]),
    (r"^(?<n>a|b)\k<n>$", ["aa"], ["ab"]),
    (r"^\k<n>(?<n>a)$", ["a"], ["aa"]),
    (r"^\1(a)$", ["a"], ["aa"]),
    (r"^(a\1)$", ["a"], ["aa"]),
    (r"^(a)?\1b$", ["b", "aab"], ["ab"]),
    (r"^(?:(a)|b)\1$", ["aa", "b"], ["a", "ba"]),
    (r"^(?:(a)|\1b)*$", ["abab"], ["c"]),
    (r"^(?:(a|b)\1)*$", ["aabb"], ["ab"]),
    (r"^(?!(a)c)\1b", ["b"], ["ab"]),
    (r"(?<=\1(a))b", ["aab"], ["ab"]),
    (r"(?<=(a)\1)b", ["ab"], ["b"]),
    # modifiers
    ("^(?i:a)b$", ["ab", "Ab"], ["aB"]),
    ("^(?i:a(?-i:b))$", ["Ab"], ["AB"]),
    ("^(?i:[b-d])$", ["C", "c"], ["a", "A"]),
    ("^(?i:[^b])$", ["a"], ["b", "B"]),
    ("^(?i:éσ)$", ["ÉΣ", "éς"], ["eσ"]),
    ("^(?i:sk)$", ["SK"], ["ſk", "s\u212a"]),
    ("^(?i:ß)$", ["ß"], ["ẞ", "ss"]),
    ("(?m:^a$)", ["b\na\rb"], ["ba"]),
    ("^(?s:.)(?-s:.)$", ["\na"], ["a\n"]),
]

REFUSALS = [
    ("(", "unterminated group at position 0"),
    ("ab(c(d)", "unterminated group at position 2"),
    ("a)", "unmatched ) at position 1"),
    ("(?", "unknown kind of group at position 0"),
    ("(?i)a", "unknown kind of group at position 0"),
    ("(?x:a)", "unknown kind of group at position 0"),
    ("(?P<n>a)", "unknown kind of group at position 0"),
    ("(?#a)", "unknown kind of group at position 0"),
    ("(?>a)", "unknown kind of group at position 0"),
    ("(a)(?(1)b|c)", "unknown kind of group at position 3"),
    ("a(?R)", "unknown kind of group at position 1"),
    ("(?|a)", "unknown kind of group at position 0"),
    ("(?<n", "unknown kind of group at position 0"),
    ("(?ii:a)", "bad modifiers at position 0"),
    ("(?i-i:a)", "bad modifiers at position 0"),
    ("(?-:a)", "bad modifiers at position 0"),
    ("(?<>a)", "bad group name at position 0"),
    ("(?<1>a)", "bad group name at position 0"),
    ("(?<n>a)(?<n>b)", "group name used before at position 7"),
    (r"(?<n>a)\k<m>", "reference to an unknown group at position 7"),
    (r"(?<n>a)\k", "bad reference to a named group at position 7"),
    (r"(?<n>a)[\k]", "bad reference to a named group at position 8"),
    ("*a", "nothing to repeat at position 0"),
    ("a**", "nothing to repeat at position 2"),
    ("a*+", "nothing to repeat at position 2"),
    ("a++", "nothing to repeat at position 2"),
    ("a|?", "nothing to repeat at position 2"),
    ("^*", "nothing to repeat at position 1"),
    (r"\b+", "nothing to repeat at position 2"),
    ("(?<=a)*", "nothing to repeat at position 6"),
    ("{1}", "nothing to repeat at position 0"),
    ("a{1}{2}", "nothing to repeat at position 4"),
    ("a{2,1}", "numbers out of order in {} at position 1"),
    ("[a", "unterminated character class at position 0"),
    ("[z-a]", "range out of order at position 2"),
    ("a\\", "nothing after the backslash at position 1"),
    ("[\\", "nothing after the backslash at position 1"),
]

# JavaScript takes these; here their meaning, or their end, could not be vouched for.
CAUTIONS = [
    (r"(a*)*\1", "unsupported reference to a group in a repetition at position 5"),
    (r"(?:(a)|b)*\1", "unsupported reference to a group in a repetition at position 10"),
    (r"(?:(a)?b\1)*", "unsupported reference to a group in a repetition at position 8"),
    (r"(?=(a+))\1", "unsupported reference into a lookaround at position 8"),
    (r"(?i:(a)\1)", "unsupported reference where case is ignored at position 7"),
    ("(?<n>a)|(?<n>b)", "group name used before at position 8"),
    ("(?:(?:a{999}){999}){999}", "too many repetitions at position 13"),
    ("(" * 100 + ")" * 100, "groups nested too deeply at position 50"),
    ("a" * (LONGEST + 1), "longer than 5000 characters"),
]


def refusal(pattern: str) -> str | None:
    try:
        FilePattern(pattern)
    except BadPattern as bad:
        return str(bad)
    return None


@pytest.mark.parametrize(("pattern", "found", "missed"), MEANINGS)
def test_a_pattern_means_what_it_means_in_javascript(pattern: str, found: list[str], missed: list[str]) -> None:
    """Also where Python, and the engine underneath, read the same characters in another way."""
    compiled = FilePattern(pattern)
    expected = dict.fromkeys(found, True) | dict.fromkeys(missed, False)
    assert expected == {path: compiled.matches(path) for path in expected}


@pytest.mark.parametrize(("pattern", "reason"), REFUSALS)
def test_what_javascript_refuses_is_refused_with_the_place(pattern: str, reason: str) -> None:
    """The message is for the author of the mode file."""
    assert reason == refusal(pattern)


@pytest.mark.parametrize(("pattern", "reason"), CAUTIONS)
def test_what_cannot_be_kept_faithfully_is_refused(pattern: str, reason: str) -> None:
    """Rather than taken for something that lets other files through."""
    assert reason == refusal(pattern)


def test_the_longest_pattern_is_accepted() -> None:
    """And searched for at once, though it is one long string."""
    pattern = FilePattern("ab" * (LONGEST // 2))
    assert [pattern.matches(path) for path in ("ab" * LONGEST, "ab" * (LONGEST // 2 - 1))] == [True, False]
    assert not pattern.exhausted


def test_a_pattern_keeps_its_text() -> None:
    """As it was written, for messages; and it begins with all its time."""
    pattern = FilePattern(r"\.md$")
    assert (pattern.text, pattern.exhausted) == (r"\.md$", False)


@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "^(?:a+a?)*$"])
def test_a_pattern_that_runs_out_of_time_denies_from_then_on(text: str) -> None:
    """Even what it would have matched: until its file is loaded again nothing gets by because of it."""
    pattern = FilePattern(text)
    answers = [pattern.matches(path, within=0.01) for path in ("a", "a" * 5000 + "!", "a")]
    assert (answers, pattern.exhausted) == ([True, False, False], True)


def test_a_path_of_absurd_length_is_not_matched() -> None:
    """No file has one, and it is not the fault of the pattern."""
    pattern = FilePattern("a")
    answers = [pattern.matches("a" * length) for length in (LONGEST_PATH, LONGEST_PATH + 1, 1)]
    assert (answers, pattern.exhausted) == ([True, False, True], False)


def test_the_engine_is_loaded_by_the_first_pattern() -> None:
    """A server without patterns does not pay for it."""
    lines = [
        "import sys",
        "from modes_actor.modes.patterns import FilePattern",
        "before = 'regex' in sys.modules",
        "FilePattern('a')",
        "sys.stdout.write(f'{before} then {\"regex\" in sys.modules}')",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout == "False then True"


# What the grammar treats in some special way, far more often than chance would have it.
TELLING = [*"()[]{}|^$.*+?\\-,:=!<>&~#019abikpPuxcs", "(?:", "(?=", "(?<!", "(?<n>", "(?i:", "(?-s:", r"\1", r"\2"]
TELLING += [
    r"\k<n>",
    "{2}",
    "{0,}",
    "{3,1}",
    "{e}",
    "[^",
    "[]",
    "a-z",
    r"\d",
    r"\b",
    r"\u00e9",
    r"\cA",
    "😀",
    "é",
    "\n",
]
patterns = st.lists(st.sampled_from(TELLING) | st.text(max_size=2), max_size=16).map("".join)
any_text = st.text(st.characters(), max_size=20)  # lone surrogates too: file names can have them


@REPEATABLE
@given(patterns | any_text, st.lists(any_text | st.text("ab1-/\n", max_size=20), max_size=4))
def test_any_text_is_a_pattern_or_a_bad_pattern_and_never_raises_later(text: str, paths: list[str]) -> None:
    """Whatever is in the mode file, and whatever path is asked for."""
    try:
        pattern = FilePattern(text)
    except BadPattern:
        return
    for path in paths:
        assert pattern.matches(path) in (True, False)


@REPEATABLE
@given(st.text(st.characters(), max_size=40), any_text, any_text)
def test_an_escaped_text_is_found_as_it_is(text: str, before: str, after: str) -> None:
    """With each code unit as \\uXXXX, nothing in it is special, in a class or out of it."""
    units = text.encode("utf-16-be", "surrogatepass").hex()
    escapes = [rf"\u{units[start : start + 4]}" for start in range(0, len(units), 4)]
    path = before + text + after
    assert FilePattern("".join(escapes)).matches(path)
    assert FilePattern("".join(f"[{escape}]" for escape in escapes)).matches(path)
