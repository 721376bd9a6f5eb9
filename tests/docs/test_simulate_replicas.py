"""The picture of waiting calls is of the simulation as it is, and that is plausible."""

import statistics

import pytest
import simulate_replicas as simulation
from documents import page

MEASURED = simulation.read_measured()
ALIKE = simulation.Measured((1.0,), 100.0)


def test_the_committed_picture_is_of_what_is_stored():
    picture = simulation.PICTURE.read_text(encoding="utf-8")
    assert simulation.digest(MEASURED) in picture, "run `python docs/simulate_replicas.py`"


def test_one_kernel_is_one_queue_whichever_way_calls_go():
    waits = [simulation.simulate(MEASURED, 1, way) for way in simulation.WAYS]
    assert waits[0] == waits[1]


@pytest.mark.parametrize("kernels", [2, 16])
def test_calls_wait_less_for_the_kernel_with_the_fewest_open_calls(kernels):
    least, turns = (simulation.simulate(MEASURED, kernels, way) for way in simulation.WAYS)
    assert statistics.mean(least) < statistics.mean(turns) / 1.5


def test_calls_of_one_length_wait_as_queueing_theory_says(monkeypatch):
    monkeypatch.setattr(simulation, "LONG", 1.0)
    monkeypatch.setattr(simulation, "CALLS", 60_000)
    waits = simulation.simulate(ALIKE, 1, simulation.WAYS[0])
    load = simulation.LOAD
    expected = load / (2 * (1 - load))  # Pollaczek and Khinchine, for one length
    assert statistics.mean(waits) == pytest.approx(expected, rel=0.15)


def test_the_page_says_for_how_many_kernels_one_bridge_is_enough(tmp_path):
    text = page("guides/headless.md").text
    assert simulation.describe_limit(MEASURED) in text, "run `python docs/simulate_replicas.py`"
    assert f"images/simulations/{simulation.PICTURE.name}" in text
    copy = tmp_path / "page.md"
    copy.write_text(text, encoding="utf-8")
    faster = simulation.Measured((1.0,), 2_345.0)
    simulation.write_limit(faster, copy)
    limit = simulation.find_limit(faster)
    assert f"about 2,300 calls per second, as many as about {round(limit, -1)} kernels run" in (
        copy.read_text(encoding="utf-8")
    )
