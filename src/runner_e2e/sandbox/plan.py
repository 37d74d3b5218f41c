"""A launch worked out to the last path: what the processes inside carry out without asking the policy again."""

from __future__ import annotations

from runner_e2e.sandbox.record import Record

__all__ = ["Plan", "Step"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    # What happens at a path of the agent's view:
    #   hide   an empty directory (or an unreadable device in place of a file) covers it
    #   home   an empty, writable directory of the agent's own covers it
    #   expose what really is there shows through a cover, as the agent's own where it has its own user
    #   own    as expose, for a path that nothing hides
    #   share  what really is there shows through a cover, as it is
    #   lock   what really is there, read-only
    #   link   a symbolic link is made again inside a `home`
    #   pin    what is seen there, mounted on itself: a mount point cannot be renamed
    Role = Literal["hide", "home", "expose", "own", "share", "lock", "link", "pin"]


class Step(Record):
    """One path of the view, with the identity of what was found there when it was judged."""

    path: str
    role: Role
    directory: bool = True
    device: int = 0
    inode: int = 0
    user: int = 0
    group: int = 0
    target: str = ""

    @property
    def hidden(self) -> bool:
        """Whether this step hides."""
        return self.role == "hide"


class Plan(Record):
    """Everything that the processes of one launch need. Only plain values, so that it can be sent.

    ``namespaces`` are flags of clone(2). ``user`` and ``group`` are those the agent gets, -1 to keep the launcher's;
    ``mapped`` says that its own files are shown as theirs.
    ``launcher_user`` and ``launcher_group`` are the launcher's; ``abi`` is the Landlock ABI of the kernel.
    ``notes`` say what the view leaves open.
    ``layers`` maps a layer to "required", "best-available" or "off"; ``locked`` chooses the wall of locked mounts.
    ``limits`` are pairs of the name of a limit and its value; ``others`` is how many processes outside the launch
    count to the agent's user.
    ``network`` is what the agent reaches (none, loopback or hosts), "" for what the launcher does; ``hosts`` are the
    rules of the proxy, and ``doors`` addresses and ports on the agent's loopback that lead to it, its own first.
    ``terminal`` are the standard streams in whose place the agent gets a terminal of its own.
    ``mode`` is "privileged", "sudo" (privileged, for a launcher that is not), "user-namespace" or "bare".
    """

    mode: str
    steps: tuple[Step, ...]
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    directory: str
    namespaces: int
    layers: tuple[tuple[str, str], ...]
    launcher_user: int
    launcher_group: int
    user: int = -1
    group: int = -1
    mapped: bool = False
    locked: bool = False
    abi: int = 0
    notes: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    others: int = 0
    network: str = ""
    hosts: tuple[str, ...] = ()
    doors: tuple[tuple[str, int], ...] = ()
    terminal: tuple[int, ...] = ()

    def need(self, layer: str) -> str:
        """How much *layer* matters to this launch."""
        return dict(self.layers)[layer]

    @property
    def scratch(self) -> int:
        """Bytes of each file system in memory that the agent gets; 0 for what the kernel takes."""
        limits = dict(self.limits)
        return limits.get("scratch", limits.get("memory", 0) // 2)

    def to_document(self) -> dict[str, Any]:
        """Plain lists and dictionaries; :meth:`from_document` reads them back."""
        return {**self.values(), "steps": [step.values() for step in self.steps]}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Plan:
        """A plan from what :meth:`to_document` made, also after a passage through JSON."""
        values = {name: tuple(map(tuple, document[name])) for name in ("environment", "layers", "limits", "doors")}
        steps = tuple(Step(**step) for step in document["steps"])
        texts = {name: tuple(document[name]) for name in ("argv", "notes", "hosts")}
        return cls(**{**document, **values, **texts, "steps": steps})
