"""What the parts of the client share: who they talk to, and what this process has found out.

Nothing here has to survive: what must is in the ledger, and what is lost with the process is found out again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner_e2e.dispatch.client_events import Event, Pace
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.preflight import read_identity
from runner_e2e.dispatch.records import read_repository, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.dispatch.attachment import Identity
    from runner_e2e.dispatch.claim import Holder
    from runner_e2e.dispatch.client_events import Kind
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import ShardState
    from runner_e2e.dispatch.shard_states import State
    from runner_e2e.dispatch.shared_ledger import SharedLedger

__all__ = ["Context"]


@dataclass(kw_only=True)
class Context:
    """The means of a client, and its memory.

    *keys* are the campaign keys, the newest first. *now* gives seconds since the epoch, *wait* sleeps for seconds.
    """

    ledger: Ledger
    shared: SharedLedger
    api: GitHubApi
    reader: ConditionalReader
    keys: Sequence[bytes]
    now: Callable[[], float]
    wait: Callable[[float], None]
    say: Callable[[Event], None]
    pace: Pace = field(default_factory=Pace)

    changes: int = 0
    """Moves of shards so far; a round that makes none was quiet."""

    ready: bool = False
    """Whether a preflight has passed, and GitHub has refused no dispatch since."""

    reserved: set[str] = field(default_factory=set)
    """Nonces whose reservation stands in the shared ledger."""

    not_sent: dict[int, int] = field(default_factory=dict)
    """Shards whose dispatch certainly was not sent, though it may be, and how often that happened."""

    holders: dict[str, Holder] = field(default_factory=dict)
    """Who holds the claim of a nonce: it never changes."""

    missed: dict[int, float] = field(default_factory=dict)
    """Runs that GitHub says do not exist, and since when it has said so without a break."""

    cancelled: dict[int, int] = field(default_factory=dict)
    """Runs that were asked to stop, and how often."""

    _identity: Identity | None = None
    _branch: str = ""
    _commit: str = ""

    def tell(self, kind: Kind, text: str, *, shard: int | None = None, until: float | None = None) -> None:
        """Says what happened."""
        self.say(Event(at=self.now(), kind=kind, text=text, shard=shard, until=until))

    def told(self, shard: ShardState, kind: Kind, text: str) -> ShardState:
        """Says what became of *shard*, and gives it back."""
        self.changes += 1
        self.tell(kind, f"shard {shard.index}: {text}", shard=shard.index)
        return shard

    def shards(self, campaign: str, *states: State) -> tuple[ShardState, ...]:
        """The shards of *campaign* that are in one of *states*."""
        return tuple(shard for shard in self.ledger.shards(campaign) if shard.state in states)

    def identity(self) -> Identity:
        """Whose token it is. Raises :class:`~runner_e2e.errors.GitHubError`."""
        if self._identity is None:
            self._identity = read_identity(self.api)
        return self._identity

    def owner(self) -> str:
        """How the shared ledger names this client: the account, and a part of the local ledger's random number."""
        return f"{self.identity().login or 'app'}/{self.ledger.uuid[:8]}"

    def branch(self) -> str:
        """The default branch. Raises :class:`~runner_e2e.errors.GitHubError`."""
        if not self._branch:
            self._branch = read_repository(self.api).default_branch
        return self._branch

    def found_branch(self, name: str) -> None:
        """Keeps the default branch that a preflight found."""
        self._branch = name

    def commit(self) -> str:
        """A commit of the repository, which a tag must have. Raises :class:`~runner_e2e.errors.GitHubError`."""
        if not self._commit:
            answer = self.api.get(f"git/ref/{segment(f'heads/{self.branch()}')}")
            self._commit = value_of(answer.data, str, "object", "sha")
        return self._commit
