"""Runs cells on this machine: one isolated attempt at a time, always ended, always recorded."""
