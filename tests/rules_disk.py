"""A project and a home with rules in them, for the tests that read them."""

import os
from pathlib import Path

from modes_actor.modes.rules import (
    Rules,
    load_rules,
    rules_signature,
)


class Disk:
    """A project and a home, side by side."""

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.root = self.base / "project"
        self.home = self.base / "home"
        self.root.mkdir()
        self.home.mkdir()

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Without content a file holds its own path."""
        file = self.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        content = content or path
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def link(self, path: str, target: str | Path) -> None:
        link = self.base / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

    def load(self, slug: str = "code") -> Rules:
        return load_rules(slug, project_root=self.root, home=self.home)

    def sources(self, slug: str = "code") -> list[str]:
        return [rule.source for rule in self.load(slug).rules]

    def only(self) -> tuple[str, list[str]]:
        """The text of the one rule, and the sentences of all problems."""
        loaded = self.load()
        (rule,) = loaded.rules
        return rule.text, [problem.sentence for problem in loaded.problems]

    def signature(self) -> object:
        return rules_signature(project_root=self.root, home=self.home)
