"""Repositories that are not on this machine."""
