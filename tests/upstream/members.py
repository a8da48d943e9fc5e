"""The members of upstream that this package relies on or replaces, with a digest of each.

A digest that is not listed means that somebody has to look. To support one more version, look at
what changed, do what the row says, and APPEND the version and its digest; to raise the floor,
REPLACE the digests by those of the new floor and later. ``python -m tests.upstream.digests``
prints what the installed version has and the rows do not.
"""

from __future__ import annotations

from dataclasses import dataclass

PLUGIN = "livekit.plugins.google.realtime.realtime_api"
PLUGIN_UTILS = "livekit.plugins.google.utils"
AGENTS = "livekit.agents.llm.realtime"
SDK_LIVE = "google.genai.live"

ABSENT = "absent"
"""The digest of a member that a version does not have."""


@dataclass(frozen=True)
class Member:
    """One class, function, method or property of upstream."""

    module: str
    name: str
    why: str
    """Why it is relied on, or what replaces it."""
    if_it_moved: str
    """What to do then."""
    protected_by: str
    """The test that breaks when it no longer is what it was taken to be."""
    digests: dict[str, str]
    """By the first of the supported versions that has it."""
