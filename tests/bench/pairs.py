# SPDX-License-Identifier: Apache-2.0
"""Numbers of pairs: what a ratio is worth when the machine itself varies more than the ratio."""

import statistics


def quartiles(values):
    """(lower quartile, median, upper quartile)"""
    if len(values) == 1:
        return (values[0],) * 3
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, statistics.median(values), high


def summary(values):
    low, median, high = quartiles(values)
    return {"median": median, "lower": low, "upper": high, "pairs": len(values)}


def ratios(pairs, measure):
    """@measure of the variant over that without, of each pair that has both."""
    found = [(measure(without), measure(variant)) for without, variant in pairs]
    return [with_it / without for without, with_it in found if without and with_it]
