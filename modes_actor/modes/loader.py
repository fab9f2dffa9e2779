"""Mode files to a catalog. The one place where files of modes are read, and where the last good version is kept.

Promises: nothing raises; a file that cannot be read as a whole keeps the modes it last gave; a file that is gone gives
none; everything wrong is a Problem of the catalog.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from modes_actor.modes.catalog import ModeCatalog, builtin_modes, merge
from modes_actor.modes.model import ModeConfig, Origin, Problem, Source
from modes_actor.modes.restrictions import restriction_problems
from modes_actor.modes.servers import McpServers, load_servers, server_files
from modes_actor.modes.text_files import FileUnreadable, read_text

if TYPE_CHECKING:
    from modes_actor.modes.reading import ModeFile

PROJECT_FILE = ".roomodes"
GLOBAL_FILES = ("modes.yaml", "custom_modes.yaml", "custom_modes.json")
"""Of two that define the same slug, the earlier counts."""


class Loaded(Struct, frozen=True):
    """Everything that files say about modes, at one moment."""

    catalog: ModeCatalog
    servers: McpServers


class ModeLoader:
    def __init__(self, project_root: Path, config_dir: Path, *, project_file: Path | None = None) -> None:
        """`project_file` is read in place of the project's own, as if it were that."""
        self.project_root = project_root
        self.config_dir = config_dir
        self._project_file = project_file or project_root / PROJECT_FILE
        self._last_good: dict[Path, ModeFile] = {}

    def files(self) -> list[Path]:
        """All files whose change can change what is loaded, whether they exist or not."""
        return [*self._mode_files(), *server_files(self.project_root, self.config_dir)]

    def load(self, *, unsettled: Collection[Path] = ()) -> Loaded:
        """Everything as it is now; of mode files that are still being saved, what they last gave."""
        problems: list[Problem] = []
        servers = load_servers(server_files(self.project_root, self.config_dir))
        by_source: dict[Source, list[ModeConfig]] = {"global": [], "project": []}
        left_out: dict[Source, dict[str, Origin]] = {"global": {}, "project": {}}
        for path, source in self._mode_files().items():
            known = {mode.slug: mode for mode in by_source[source]}
            is_settled = path not in unsettled
            found = self._read(path, source, problems) if is_settled else self._last_good.get(path)
            if found is None:
                continue
            left_out[source] |= found.left_out
            for mode in found.modes:
                if mode.slug in known:
                    other = known[mode.slug].origin
                    message = f"The mode `{mode.slug}` is also defined in {other}, which counts"
                    problems.append(Problem(str(path), mode.origin.line or 1, 1, "warning", message))
                else:
                    by_source[source].append(mode)
        below: dict[str, ModeConfig] = {mode.slug: mode for mode in builtin_modes()}
        for source, modes_there in by_source.items():
            modes_there += _locked(left_out[source], {mode.slug for mode in modes_there}, below, source, problems)
            below |= {mode.slug: mode for mode in modes_there}
        modes = merge(builtin_modes(), by_source["global"], by_source["project"])
        problems += [problem for mode in modes for problem in restriction_problems(mode, servers)]
        return Loaded(ModeCatalog(modes, [*problems, *servers.problems]), servers)

    def _mode_files(self) -> dict[Path, Source]:
        files: dict[Path, Source] = {self.config_dir / name: "global" for name in GLOBAL_FILES}
        files[self._project_file] = "project"
        return files

    def _read(self, path: Path, source: Source, problems: list[Problem]) -> "ModeFile | None":
        try:
            text = read_text(path)
        except FileUnreadable as error:
            problems.append(Problem(str(path), 1, 1, "error", str(error)))
            return self._last_good.get(path)
        if text is None:
            self._last_good.pop(path, None)
            return None
        from modes_actor.modes.reading import read_modes  # where there are no mode files, nothing that reads them loads

        if not text.is_utf8:
            message = "Some of the file is no UTF-8, and stands as replacement characters in the modes"
            problems.append(Problem(str(path), 1, 1, "warning", message, "save it as UTF-8"))
        found = read_modes(text.text, file=str(path), source=source)
        problems += found.problems
        if found.readable:
            self._last_good[path] = found
        return self._last_good.get(path)


def _locked(
    left_out: Mapping[str, Origin],
    defined: Collection[str],
    below: Mapping[str, ModeConfig],
    source: Source,
    problems: list[Problem],
) -> list[ModeConfig]:
    """Whoever replaces a mode may want to restrict it: if that cannot be used, the one below must not be set free."""
    locked: list[ModeConfig] = []
    for slug, origin in left_out.items():
        if slug in below and slug not in defined:
            message = (
                f"The {below[slug].source} mode `{slug}`, which this one replaces, may use no tools until it is mended"
            )
            problems.append(Problem(origin.file, origin.line or 1, 1, "error", message))
            without = structs.replace(below[slug], groups=(), extends=None, mcp_restrictions=None)
            locked.append(structs.replace(without, source=source, origin=origin))
    return locked
