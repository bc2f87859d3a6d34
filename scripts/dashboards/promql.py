# SPDX-License-Identifier: Apache-2.0
"""The expressions that the dashboards share, over what their variables select."""

INSTANCES = 'cluster=~"$cluster", job=~"$job", instance=~"$instance"'
WORKLOADS = INSTANCES + ', workload=~"$workload"'
WINDOW = "[$__rate_interval]"
BUSY = ', state!="idle"'
# Threads that read and answer requests: of the others a housekeeper that sleeps is busy all the time.
SERVING = ', role="serving"'


def gauge(metric, by, more="", operation="sum"):
    """The present value, over all instances."""
    return f"{operation} by ({by}) ({metric}{{{WORKLOADS}{more}}})"


def rate(metric, by, more="", scope=WORKLOADS):
    """Increase per second, over all instances."""
    return f"sum by ({by}) (rate({metric}{{{scope}{more}}}{WINDOW}))"


def quantile(q, metric, by, more=""):
    """Quantile @q of the histogram @metric, over all instances."""
    return f"histogram_quantile({q}, {rate(metric + '_bucket', by + ', le', more)})"


def buckets(metric, more=""):
    """What a heatmap shows."""
    return rate(metric + "_bucket", "le", more)


def mean(metric, by, more=""):
    """Mean of the histogram @metric: exact, whatever the buckets."""
    return f"{rate(metric + '_sum', by, more)} / {rate(metric + '_count', by, more)}"


def share(by, state, of=""):
    """Part of the threads' time that is spent in @state (a matcher); @of narrows what it is of."""
    part = rate("workload_thread_seconds_total", by, f", {state}")
    return f"{part} / {rate('workload_thread_seconds_total', by, of)}"


def utilization(by):
    """Busy time / (threads * time) of the threads that serve."""
    return share(by, 'role="serving", state!="idle"', SERVING)
