"""What was probably meant by a name that nobody knows."""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Final

LONGEST: Final = 100
"""Characters of a name that are compared."""


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, if there is one. A help, so it does not look forever."""
    by_folded = {each.casefold(): each for each in islice(known, 200) if len(each) <= LONGEST}
    found = difflib.get_close_matches(name[:LONGEST].casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    near = closest(name, known)
    return f"did you mean `{near}`?" if near is not None else None
