"""Explains, step by step and without launching anything, how an artifact would run and why."""

from __future__ import annotations

from runner_e2e.artifacts.launch import parse_digest, prepare
from runner_e2e.artifacts.opening import open_artifact
from runner_e2e.artifacts.sealed import digest_of
from runner_e2e.artifacts.trusted_root import TrustedRoot
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runner_e2e.artifacts.launch import Launch
    from runner_e2e.artifacts.opening import Opened
    from runner_e2e.artifacts.trusted_root import RefusedRoot

__all__ = ["Explanation", "Step", "explain"]


_FILE = "a regular file, no link, not writable by group or others"
_SNAPSHOT = "a sealed snapshot with the expected sha256"


class Step(Record):
    """One question, whether the answer lets the artifact go on this way, and what was found."""

    question: str
    passed: bool
    found: str = ""


class Explanation(Record):
    """The steps in their order and how the artifact would run; ``how`` is ``refused`` where it would not."""

    path: str
    how: str
    steps: tuple[Step, ...]
    launch: Launch | None = None

    @property
    def runs(self) -> bool:
        """Whether it would run at all."""
        return self.how != "refused"


def explain(
    path: str, *, sha256: str | None, root: TrustedRoot | RefusedRoot | None = None, assigned: bool = False
) -> Explanation:
    """Asks everything that a launch asks. Without *sha256* the digest is shown and compared with nothing.

    Raises :class:`UsageError` for a bad digest.
    """
    expected = parse_digest(sha256) if sha256 is not None else None
    steps: list[Step] = []
    try:
        artifact = open_artifact(path)
    except LaunchError as error:
        steps.append(_refused(_FILE, error))
        return Explanation(path=path, how="refused", steps=tuple(steps))
    try:
        found = f"{artifact.size} bytes"
        steps.append(Step(question=_FILE, passed=True, found=found))
        _ask_root(steps, artifact, root, assigned=assigned)
        if expected is None:
            digest = digest_of(artifact.descriptor)
            steps.append(Step(question="sha256", passed=True, found=f"{digest}, compared with nothing"))
            expected = digest
        return _try(path, expected, steps, root, assigned=assigned)
    except OSError as error:
        steps.append(Step(question="readable to its end", passed=False, found=error.strerror or str(error)))
        return Explanation(path=path, how="refused", steps=tuple(steps))
    finally:
        artifact.close()


def _ask_root(steps: list[Step], artifact: Opened, root: TrustedRoot | RefusedRoot | None, *, assigned: bool) -> None:
    if root is None:
        steps.append(Step(question="a trusted launch root", passed=False, found="none is set"))
    elif not isinstance(root, TrustedRoot):
        steps.append(Step(question="a trusted launch root", passed=False, found=f"{root.path}: {root.reason.text}"))
    else:
        steps.append(Step(question="a trusted launch root", passed=True, found=str(root)))
        steps.append(Step(question="not assigned by the host", passed=not assigned))
        if not assigned:
            for question, doubt in root.judge(artifact.descriptor, artifact.device):
                steps.append(Step(question=question, passed=doubt is None, found=doubt.text if doubt else ""))
                if doubt:
                    break


def _try(
    path: str, digest: str, steps: list[Step], root: TrustedRoot | RefusedRoot | None, *, assigned: bool
) -> Explanation:
    try:
        launch = prepare(path, sha256=digest, root=root, assigned=assigned)
    except LaunchError as error:
        steps.append(_refused(_SNAPSHOT, error))
        return Explanation(path=path, how="refused", steps=tuple(steps))
    launch.close()
    if launch.how != "in-place":
        steps.append(Step(question=_SNAPSHOT, passed=True, found=launch.sha256))
    return Explanation(path=path, how=launch.how, steps=tuple(steps), launch=launch)


def _refused(question: str, error: LaunchError) -> Step:
    problem = error.problem
    return Step(question=question, passed=False, found=f"{problem.why} ({problem.fix})" if problem.fix else problem.why)
