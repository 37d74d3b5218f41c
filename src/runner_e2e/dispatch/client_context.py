"""What the parts of the client share: who they talk to, and what this process has found out.

Nothing here has to survive: what must is in the ledger, and what is lost with the process is found out again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner_e2e.dispatch.attachment import Origin
from runner_e2e.dispatch.client_events import Event
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.preflight import check_same_number, read_identity
from runner_e2e.dispatch.records import read_repository, value_of
from runner_e2e.errors import DefectError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from runner_e2e.dispatch.attachment import Identity
    from runner_e2e.dispatch.claim import Holder
    from runner_e2e.dispatch.client_events import Kind
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState
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

    fetch_from: dict[int, float] = field(default_factory=dict)
    """When the results of a run are worth another look, after one that found too few."""

    cancelled: dict[int, int] = field(default_factory=dict)
    """Runs that were asked to stop, and how often."""

    branch: str = ""
    """The default branch, empty until it was read."""

    _seen: dict[str, float] = field(default_factory=dict)
    _identity: Identity | None = None
    _commit: str = ""

    def since(self, what: str, noted: float) -> float:
        """Since when *what* is so, which was *noted* then; where the clock was set back since, for this process.

        Otherwise a wait would last until the clock is there again, which may be years.
        """
        now = self.now()
        self._seen[what] = min(now, self._seen.get(what, now))
        return min(noted, self._seen[what])

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
        return f"{self.identity().login or 'app'}/{self._mark()}"

    def is_owner(self, name: str) -> bool:
        """Whether the shared ledger names this client so; an account changes with its token, and by itself."""
        return name.rpartition("/")[2] == self._mark()

    def _mark(self) -> str:
        return self.ledger.uuid[:8]

    def origin(self, campaign: CampaignState) -> Origin:
        """What the runs of *campaign* have in common. Raises what :meth:`locate` raises."""
        return Origin(
            identity=self.identity(),
            workflow=campaign.workflow,
            branch=self.locate(campaign).branch,
            repository_id=self._number_of(campaign),
        )

    def locate(self, campaign: CampaignState) -> Self:
        """Makes sure that writes go to the repository of *campaign*, which is known by its number.

        Goes on under its new name where it was renamed. Raises :class:`~runner_e2e.errors.RefusedError` where another
        repository has its name now, and :class:`~runner_e2e.errors.GitHubError`.
        """
        if not self.branch:
            found = read_repository(self.api)
            check_same_number(campaign.repository, found.id, self._number_of(campaign))
            if found.full_name.lower() != self.api.repository.lower():
                self.tell("warning", f"{campaign.repository} is called {found.full_name} now; what was sent is watched")
                # Reads are sent on from the old name, writes are not.
                self.api.repository = found.full_name
            self.branch = found.default_branch
        return self

    def _number_of(self, campaign: CampaignState) -> int:
        if campaign.repository_id is None:
            raise DefectError(f"{campaign.id} was sent to a repository without an id")
        return campaign.repository_id

    def commit(self) -> str:
        """A commit of the repository, which a tag must have. Raises :class:`~runner_e2e.errors.GitHubError`."""
        if not self._commit:
            answer = self.api.get(f"git/ref/{segment(f'heads/{self.branch}')}")
            self._commit = value_of(answer.data, str, "object", "sha")
        return self._commit

    def doubt(self) -> None:
        """Forgets what a request that failed may have been wrong about: the repository may have been renamed."""
        self.ready, self.branch, self._commit = False, "", ""
