"""Repairs: how the cause of a finding is taken out of a file, by edits of spans and nothing else."""
