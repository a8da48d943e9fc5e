"""A part of a text that is made by a command, between two marks."""

from __future__ import annotations


def put(text: str, begin: str, end: str, body: str) -> str:
    """The text with this body between its marks.

    Args:
        text: What has the marks.
        begin: The mark before the body.
        end: The mark after it.
        body: What is to stand between them.

    Raises:
        ValueError: The marks are not there, in order.
    """
    before, opening, rest = text.partition(begin)
    _, closing, after = rest.partition(end)
    if not opening or not closing:
        raise ValueError(f"no {begin} and {end} to write between")
    return f"{before}{begin}\n\n{body}\n\n{end}{after}"
