"""Reads the world and never judges it."""
