"""Scenarios of the faults that ``patches/`` ends, played with the google plugin's own model.

Pytest does not collect them by itself: ``tests/test_patches.py`` runs them on copies of the plugin,
without and with each patch. Run by hand they show the faults of the installed plugin:
``python -m pytest tests/patches/scenario_tool_result.py``.
"""
