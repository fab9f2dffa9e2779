"""Several requests of one id: an answer may be to any of them, as long as each answer has one to itself."""

from collections.abc import Sequence

from fuzz_expectation import Expectation


def matching(outcomes: Sequence[int], expectations: Sequence[Expectation]) -> list[int | None]:
    """To each expectation the answer that can be its own, or None; as many have one as can have."""
    owners: dict[int, int] = {}

    def gets_one(at: int, tried: set[int]) -> bool:
        for answer, outcome in enumerate(outcomes):
            if answer not in tried and outcome in expectations[at].outcomes:
                tried.add(answer)
                if answer not in owners or gets_one(owners[answer], tried):
                    owners[answer] = at
                    return True
        return False

    for at in range(len(expectations)):
        gets_one(at, set())
    found: list[int | None] = [None] * len(expectations)
    for answer, at in owners.items():
        found[at] = answer
    return found
