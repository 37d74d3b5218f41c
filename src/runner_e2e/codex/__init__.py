"""Starting Codex so that it can plan and not write: profiles, requests, launch identity, and its activity channel."""
