"""Spec 0.4 in plain Python: the int8 image and the one cosine."""

import math


def image(vector):
    """q = rint(127 * e / max|e|), float64, halves to even."""
    values = [float(value) for value in vector]
    peak = max(abs(value) for value in values)
    return [round(127.0 * value / peak) for value in values]


def dot(a, b):
    return sum(int(x) * int(y) for x, y in zip(a, b, strict=True))


def cosine(a, b):
    """(q_a . q_b) / (sqrt(q_a . q_a) * sqrt(q_b . q_b))."""
    return float(dot(a, b)) / (math.sqrt(dot(a, a)) * math.sqrt(dot(b, b)))
