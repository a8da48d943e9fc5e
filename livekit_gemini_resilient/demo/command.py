"""The ``demo`` command."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..testing.extra import advice
from .faults import FAULTS

if TYPE_CHECKING:
    from .play import Played

_DEFAULT_PROFILE = "2.5-native-audio"

_DEFAULT_FAULT = next(iter(FAULTS))

_DEFAULT_PATIENCE = 4.0
"""Seconds. A model that answers does so within 1 s here."""

_LONGEST_PATIENCE = 60.0
"""Seconds. None of the model's own time-outs is longer."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser's subcommands."""
    parser = commands.add_parser(
        "demo",
        help="the google plugin and this package in the same call, side by side",
        description="Leads the same call with the google plugin's model and with this package's, "
        "on a simulated Gemini Live server: no key, no network. Exits with 0 if this package's "
        "model answered the tool result exactly once and the call went on (with --long: if it "
        "lost nothing), else with 1.",
    )
    parser.add_argument(
        "--profile",
        default=_DEFAULT_PROFILE,
        metavar="NAME",
        help="how the server behaves (default: %(default)s)",
    )
    parser.add_argument(
        "--fault",
        choices=FAULTS,
        metavar="NAME",
        help=f"what happens in mid-turn (default: {_DEFAULT_FAULT}); not with --long",
    )
    parser.add_argument(
        "--patience",
        type=_seconds,
        default=_DEFAULT_PATIENCE,
        metavar="SECONDS",
        help="how long an answer is waited for (default: %(default)g)",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="a long conversation with faults at random moments, and what is lost in it",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="which long conversation (default: %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="list profiles and faults")
    parser.set_defaults(run=lambda chosen: _run(chosen, parser))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_PATIENCE:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 < seconds <= {_LONGEST_PATIENCE:g}")
    return seconds


def _run(chosen: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    try:
        from ..testing import PROFILES
    except ModuleNotFoundError as missing:
        what = advice(missing)
        if what is None:
            raise
        print(what, file=sys.stderr)
        return 2
    if chosen.list:
        apis = {"gemini": "Gemini API", "vertex": "Vertex AI"}
        profiles = {name: f"{p.label}, {apis[p.api]}" for name, p in PROFILES.items()}
        _print_list("profiles", profiles)
        _print_list("faults", {name: fault.summary for name, fault in FAULTS.items()})
        return 0
    if chosen.profile not in PROFILES:
        parser.error(f"argument --profile: {chosen.profile!r} is none of {', '.join(PROFILES)}")
    if chosen.long and chosen.fault is not None:
        parser.error("argument --fault: not with --long, which has faults of its own")
    if chosen.long:
        return _run_long(chosen)
    chosen.fault = chosen.fault or _DEFAULT_FAULT
    with _quiet():
        plain, ours = asyncio.run(_play_both(chosen))
    _print_report(chosen, plain, ours)
    return 0 if ours.verdict.survived else 1


def _run_long(chosen: argparse.Namespace) -> int:
    from livekit.plugins.google import __version__ as version
    from livekit.plugins.google.realtime import RealtimeModel as PluginModel

    from .. import model
    from .long import losses
    from .long_plan import plan

    async def lead_both() -> list[list[str]]:
        how = {"profile": chosen.profile, "seed": chosen.seed, "patience": chosen.patience}
        return [await losses(m, **how) for m in (PluginModel, model.RealtimeModel)]

    with _quiet():
        plain, ours = asyncio.run(lead_both())
    events = [turn.event.value for turn in plan(chosen.seed)]
    print(f"{len(events)} turns, profile {chosen.profile}, seed {chosen.seed}: {', '.join(events)}")
    sides = {f"plain plugin (livekit-plugins-google {version})": plain, "resilient": ours}
    for label, lost in sides.items():
        print(f"\n{label}: {f'{len(lost)} losses' if lost else 'nothing is lost'}")
        print(*(f"  {loss}\n" for loss in lost), sep="", end="")
    return 1 if ours else 0


def _print_list(title: str, entries: dict[str, str]) -> None:
    print(f"{title}:")
    width = max(map(len, entries)) + 2
    for name, summary in entries.items():
        print(f"  {name:<{width}}{summary}")


async def _play_both(chosen: argparse.Namespace) -> tuple[Played, Played]:
    from livekit.plugins.google.realtime import RealtimeModel as PluginModel

    from .. import model
    from .play import play

    start = asyncio.get_running_loop().time()
    plain, ours = await asyncio.gather(
        *(
            play(
                model_type,
                FAULTS[chosen.fault],
                profile=chosen.profile,
                patience=chosen.patience,
                start=start,
            )
            for model_type in (PluginModel, model.RealtimeModel)
        )
    )
    return plain, ours


def _print_report(chosen: argparse.Namespace, plain: Played, ours: Played) -> None:
    from livekit.plugins.google import __version__ as version

    from .report import columns, paragraph

    width = shutil.get_terminal_size((100, 24)).columns
    titles = (f"plain plugin (livekit-plugins-google {version})", "resilient (this package)")
    print(f"{chosen.fault}: {FAULTS[chosen.fault].summary}; profile {chosen.profile}\n")
    print(columns(plain.rows, ours.rows, titles, width), end="\n\n")
    for label, played in (("plain plugin", plain), ("resilient", ours)):
        outcome = "survives" if played.verdict.survived else "fails"
        print(paragraph(f"{label}:", f"{outcome}: {played.verdict}", width))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep logs and warnings of the libraries out of the report; it tells what they are about."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
