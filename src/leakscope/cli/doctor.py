"""Say what can be observed here, and why not the rest."""

from __future__ import annotations

import argparse


def prepare(parser: argparse.ArgumentParser) -> None:
    return


def run(options: argparse.Namespace) -> int:
    return 0
