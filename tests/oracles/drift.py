"""Spec 1.3 and 6.5 in plain Python: decay, the pairs that count, positions."""

import math

import numpy as np

DAY = 86_400_000_000


def on_grid(value):
    """Rounded to a multiple of 2^-12, halves to even (spec 0.2)."""
    return round(value * 4096) / 4096


def salience(s0, last_access, as_of, decay_per_day):
    """s(t) = float32(s0 * power), dt fractional days since last access (spec 0.1, 6.5)."""
    days = max(as_of - last_access, 0) / DAY
    return np.float32(float(s0) * on_grid(math.pow(decay_per_day, days)))


def counting_pairs(rows, as_of, live, access_unit_days):
    """{(agent, cell): recency} of the pairs that count; rows are (agent, cell, at)."""
    newest = {}
    for agent, cell, at in rows:
        if at <= as_of and live[cell]:
            newest[agent, cell] = max(at, newest.get((agent, cell), at))
    counting = {}
    for agent in {agent for agent, _ in newest}:
        mine = sorted((-at, cell) for (who, cell), at in newest.items() if who == agent)[:256]
        for negated, cell in mine:
            recency = on_grid(math.exp(-0.1 * ((as_of + negated) / DAY / access_unit_days)))
            if recency >= 0.05:
                counting[agent, cell] = recency
    return counting


def position(agent, pairs, saliences, images):
    """The float32 unit vector of the sum of rint(4096 * s * recency) * q; None where the agent stays."""
    total = [0] * len(images[0])
    for (who, cell), recency in sorted(pairs.items()):
        if who == agent:
            factor = round((4096.0 * float(saliences[cell])) * recency)
            total = [t + factor * int(q) for t, q in zip(total, images[cell], strict=True)]
    square = 0.0
    for t in total:
        square += float(t) * float(t)
    if square == 0.0:
        return None
    return np.array([np.float32(float(t) / math.sqrt(square)) for t in total], np.float32)
