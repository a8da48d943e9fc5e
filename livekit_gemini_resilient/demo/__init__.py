"""The demo: the google plugin's model and ours live through the same fault, side by side.

``play`` leads a call on the simulator, ``scribe`` writes down what happens to it, ``verdict``
judges it by the simulated model's memory and ``report`` prints both calls.
"""
