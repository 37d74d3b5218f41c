"""Which policies are refused before anything starts. Pure."""

from __future__ import annotations

from runner_e2e.sandbox.facts import beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.errors import Problem
    from runner_e2e.sandbox.facts import PathFact

__all__ = ["refuse", "usable"]


# Without them no program starts, or no cover can be made.
_NEEDED = ("/", "/dev", "/dev/null", "/proc")
_BAD_KINDS = {
    "missing": "it does not exist",
    "dangling symbolic link": "it is a symbolic link that leads nowhere",
    "symbolic links in a circle": "its symbolic links go in a circle",
    "unreadable": "it cannot be reached by this user",
    "relative": "it is not an absolute path",
}


def refuse(hidden: Sequence[PathFact], exposed: Sequence[PathFact]) -> tuple[Problem, ...]:
    """Every reason why these paths may not stand together; empty when they may."""
    problems = [_unusable("hidden", fact) for fact in hidden if not fact.exists]
    problems += [_unusable("exposed", fact) for fact in exposed if not fact.exists]
    real_hidden = [fact for fact in hidden if fact.exists]
    problems += [
        _problem(
            what=f"{fact.real} cannot be hidden",
            why="nothing could be run",
            fix="hide the directories that hold secrets",
        )
        for fact in real_hidden
        if fact.real in _NEEDED
    ]
    for fact in exposed:
        if fact.exists and (problem := _bad_exposure(fact, real_hidden)):
            problems.append(problem)
    return tuple(problems)


def _problem(*, what: str, why: str, fix: str) -> Problem:
    from runner_e2e.errors import Problem  # only now: it is dear to import, and most launches have no problem

    return Problem(what=what, why=why, fix=fix)


def _unusable(role: str, fact: PathFact) -> Problem:
    why = _BAD_KINDS[fact.kind]
    if fact.link:
        why += f" ({fact.link} is a symbolic link to {fact.link_target})"
    fix = f"create it before the launch, or take it out of the {role} paths"
    if fact.kind == "relative":
        fix = "write the path from /"
    elif fact.kind == "unreadable":
        fix = "run as a user who may reach it, or take it out"
    elif role == "hidden":
        fix += " (hide_if_present is for paths that may be missing)"
    return _problem(what=f"{role} path {fact.given} is refused", why=why, fix=fix)


def _bad_exposure(fact: PathFact, hidden: Sequence[PathFact]) -> Problem | None:
    """Judges one existing exposure against the hidden paths that exist."""
    same = [other for other in hidden if (other.device, other.inode) == (fact.device, fact.inode)]
    if same or any(other.real == fact.real for other in hidden):
        name = same[0].given if same else fact.real
        return _problem(
            what=f"exposed path {fact.given} is refused",
            why=f"it would reveal {name}, which is hidden: they are the same {fact.kind}",
            fix="expose a path beneath the hidden one, or do not hide it",
        )
    parents = [other for other in hidden if beneath(fact.real, other.real)]
    below = [other for other in hidden if beneath(other.real, fact.real)]
    if not parents and below:
        return _problem(
            what=f"exposed path {fact.given} is refused",
            why=f"it would reveal {below[0].given}, which is hidden: it lies above it",
            fix="expose a path beneath the hidden one",
        )
    if not parents:
        return _outside(fact, hidden)
    nearest = max(parents, key=lambda other: len(other.real))
    if fact.link and beneath(fact.given, nearest.real) and fact.link != nearest.given:
        return _problem(
            what=f"exposed path {fact.given} is refused",
            why=f"it goes through {fact.link}, a symbolic link to {fact.link_target} inside the hidden {nearest.given}",
            fix=f"expose the path that it leads to: {fact.real}",
        )
    if fact.why:
        return _problem(
            what=f"exposed path {fact.given} is refused",
            why=f"it lies beneath the hidden {nearest.given} and this user cannot read it: {fact.why}",
            fix="run as a user who may read it, or take it out",
        )
    return None


def _outside(fact: PathFact, hidden: Sequence[PathFact]) -> Problem:
    why = "it lies outside every hidden path"
    if fact.link:
        why += f": {fact.link} is a symbolic link to {fact.link_target}, so it leads to {fact.real}"
    elif hidden:
        why += f" ({', '.join(other.given for other in hidden[:3])}{', …' if len(hidden) > 3 else ''})"
    return _problem(
        what=f"exposed path {fact.given} is refused",
        why=why,
        fix="leave it out: what is not hidden is visible already",
    )


def usable(facts: Iterable[PathFact]) -> tuple[PathFact, ...]:
    """The facts that exist, each real path once."""
    return tuple({fact.real: fact for fact in facts if fact.exists}.values())
