"""Runs a workflow on this machine, under ``act`` and the exec audit, and reports where a confidential input went."""
