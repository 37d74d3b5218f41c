"""Who may pay, for what, and once: the gate, the target, the claim, and campaigns on GitHub Actions."""
