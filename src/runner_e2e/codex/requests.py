"""The requests to Codex's app-server that start threads and turns. Shapes of Codex 0.160.0's protocol, version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.codex.profile import profile_name

if TYPE_CHECKING:
    from runner_e2e.codex.profile import Host

__all__ = ["thread_resume", "thread_start", "turn_start"]


def thread_start(host: Host, *, planning: bool, directory: str) -> dict[str, object]:
    """Parameters of ``thread/start`` in the workspace *directory*.

    Raw response items are asked for: the item events leave out commands that end at once.
    """
    return {
        "cwd": directory,
        "runtimeWorkspaceRoots": [directory],
        "permissions": profile_name(host, planning=planning),
        "approvalPolicy": "never",
        "experimentalRawEvents": True,
    }


def thread_resume(host: Host, *, planning: bool, directory: str, thread: str) -> dict[str, object]:
    """Parameters of ``thread/resume``: the same permissions as a new thread would get."""
    return {
        "threadId": thread,
        "cwd": directory,
        "runtimeWorkspaceRoots": [directory],
        "permissions": profile_name(host, planning=planning),
        "approvalPolicy": "never",
    }


def turn_start(host: Host, *, planning: bool, thread: str, text: str, model: str) -> dict[str, object]:
    """Parameters of ``turn/start``: *text* for the agent, in the plan mode when *planning*."""
    return {
        "threadId": thread,
        "permissions": profile_name(host, planning=planning),
        "approvalPolicy": "never",
        "input": [{"type": "text", "text": text}],
        "collaborationMode": {"mode": "plan" if planning else "default", "settings": {"model": model}},
    }
