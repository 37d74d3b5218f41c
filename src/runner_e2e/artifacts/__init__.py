"""Launch artifacts: executables run from a sealed snapshot or in place from a trusted read-only root."""
