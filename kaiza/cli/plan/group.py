"""`kaiza plan`: what agents may change, and the person who decides it."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.plan import approve as plan_approve
from kaiza.cli.plan import lint as plan_lint
from kaiza.cli.plan import list_plans as plan_list
from kaiza.cli.plan import new as plan_new
from kaiza.cli.plan import reject_revoke as plan_take_back
from kaiza.cli.plan import show as plan_show


def add(parser: argparse.ArgumentParser) -> None:
    """The commands about plans."""
    commands = options.add_group(
        parser, "What agents may change: write, read, check, approve and take back plans.", "kaiza plan list"
    )
    for part in (plan_list, plan_show, plan_new, plan_lint, plan_approve, plan_take_back):
        part.add(commands)
