"""`kaiza plan`: what agents may change, and the person who decides it."""

import argparse

from kaiza.cli import options, plan_approve, plan_lint, plan_list, plan_new, plan_show, plan_take_back


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about plans."""
    commands = options.add_group(
        parser, "What agents may change: write, read, check, approve and take back plans.", "kaiza plan list"
    )
    for part in (plan_list, plan_show, plan_new, plan_lint, plan_approve, plan_take_back):
        part.add(commands)
