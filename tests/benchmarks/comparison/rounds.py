"""Measures the rows in rounds: within each, every way once, so that noise hurts all alike."""

import random
import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from comparison.figures import Measured, Run
from comparison.raw_clients import Hung
from comparison.requests import WrongAnswer
from comparison.rows import Scenario, Servers, running
from comparison.servers import Way

WARM_UP_S = 0.1


def measure(
    scenarios: list[Scenario],
    *,
    rounds: int,
    seconds: float,
    only: set[str],
    keep: Callable[[Run], None] = lambda _: None,
) -> Run:
    """Measure, and show how far it is.

    Args:
        scenarios: What.
        rounds: How often each way is measured.
        seconds: How long one measurement takes.
        only: Names of servers; empty for all.
        keep: Is given all that is measured so far, after each scenario.
    """
    run = Run()
    ways = [[way for way in s.ways if not only or way.server in only] for s in scenarios]
    total = (rounds + 1) * sum(len(of) for of in ways)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress, running() as servers:
        task = progress.add_task("", total=total)
        for scenario, fit in zip(scenarios, ways, strict=True):
            rows = [
                Measured(p.title, p.unit, {str(way): [] for way in fit}) for p in scenario.parts
            ]
            run.rows |= {p.key: row for p, row in zip(scenario.parts, rows, strict=True)}
            for number in range(rounds + 1):
                for way in random.sample(fit, len(fit)):
                    label = f"{scenario.parts[0].key:18} {way!s:26}"
                    progress.update(task, description=label)
                    took = seconds if number else WARM_UP_S
                    values = measured_once(scenario, servers, way, took)
                    progress.advance(task)
                    if values is None:
                        fit.remove(way)
                        progress.advance(task, rounds - number)
                    for row, value in zip(rows, values or (), strict=False):
                        if number:  # the first round warms up
                            row.rounds[str(way)].append(value)
            for row in rows:
                row.rounds = {way: row.rounds[way] for way in map(str, fit)}
            keep(run)
    return run


def measured_once(
    scenario: Scenario, servers: Servers, way: Way, seconds: float
) -> Sequence[float] | None:
    """Measure once; None, with the reason on stderr, if the server cannot do it."""
    try:
        return scenario.measure(servers, way, seconds)
    except (Hung, WrongAnswer, OSError) as problem:
        print(f"{scenario.family}, {way}: not measured: {str(problem)[:600]}", file=sys.stderr)
        return None
