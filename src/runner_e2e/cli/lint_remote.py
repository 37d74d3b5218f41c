"""``runner-e2e lint OWNER/NAME[@REF]``: a repository of GitHub in the place of files on this machine."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import UsageError
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner_e2e.remote.name import RemoteName

__all__ = ["Target", "target_of"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is linted: *paths* from the folder *current*; findings show *label* before their paths."""

    paths: tuple[Path, ...]
    current: Path
    label: str = ""

    def refuse(self, **options: object) -> None:
        """Raises :class:`~runner_e2e.errors.UsageError` for options that need files on this machine."""
        for name, value in options.items():
            if self.label and value:
                raise UsageError(
                    f"`--{name}` needs files on this machine",
                    why=f"{self.label.rstrip(':')} is fetched to be linted, and is gone afterwards",
                    fix="clone it, and lint the clone",
                )


@contextmanager
def target_of(paths: Sequence[Path]) -> Iterator[Target]:
    """The files that *paths* name; those of a repository of GitHub are there until the end.

    Raises :class:`~runner_e2e.errors.GitHubError` where it cannot be fetched.
    """
    name = _remote(paths)
    if name is None:
        yield Target(paths=tuple(paths), current=Path.cwd())
        return
    import tempfile

    from runner_e2e import gha
    from runner_e2e.remote.download import DEFAULT_URL, Api, fetch

    api = Api(url=gha.run_contexts().api_url or DEFAULT_URL, token=gha.github_token())
    with tempfile.TemporaryDirectory(prefix="runner-e2e-lint-") as folder:
        root = Path(folder).resolve()
        fetch(name, root, api=api)
        # So that it is a repository of its own, whatever folder the temporary ones are in.
        (root / ".git").mkdir()
        yield Target(paths=(), current=root, label=f"{name}:")


def _remote(paths: Sequence[Path]) -> RemoteName | None:
    """The repository that *paths* name; None where they are files, or meant to be."""
    absent = [path for path in paths if not os.path.exists(path)]  # noqa: PTH110 - there may be thousands of files
    if not absent:
        return None
    from runner_e2e.remote.name import parse_name

    names = [parse_name(str(path)) for path in absent]
    found = next((name for name in names if name is not None and _is_meant(name)), None)
    if found is not None and len(paths) > 1:
        raise UsageError(f"{found} is linted alone", fix="lint one repository of GitHub a call, without other paths")
    return found


def _is_meant(name: RemoteName) -> bool:
    """Whether it is no path with a typing mistake: ``workflows/evaluate.yml``, or a file in a folder that is there."""
    return bool(name.ref) or not (name.name.endswith((".yml", ".yaml")) or Path(name.owner).exists())
