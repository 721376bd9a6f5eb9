"""How many functions that nobody wrote to be tools are good ones as they are."""

from collections import Counter

import anyio
import pytest
from authors_functions import FUNCTIONS
from measure_authors import (
    GOOD,
    UNSAID,
    WRONG,
    compute_answers,
    measure,
    measure_shares,
    write_table,
)

pytestmark = [
    pytest.mark.needs("matplotlib", "networkx", "pandas", "scipy", "sklearn", "tqdm"),
    pytest.mark.timeout(300),
]

GOOD_FLOOR = 135
"""Nine of ten. Each of the others is refused with the sentence that helps; none is wrong."""


def test_the_functions_are_like_those_of_public_notebooks():
    shares = measure_shares()
    assert len(FUNCTIONS) == len({each.name for each in FUNCTIONS}) == 150
    assert shares.unhinted == pytest.approx(79, abs=3)
    assert shares.undocumented == pytest.approx(34, abs=3)
    assert shares.with_objects == pytest.approx(17, abs=2)
    assert shares.number_defaults == pytest.approx(16, abs=2)
    assert shares.other_alphabets == pytest.approx(7, abs=1)
    assert shares.tuples == pytest.approx(9, abs=1)
    assert shares.prints == pytest.approx(5, abs=1)
    assert shares.plots == pytest.approx(6, abs=1)
    assert 0.2 <= shares.stars <= 2


def test_each_function_works_in_plain_python_or_has_a_sentence_to_wait_for():
    answers = compute_answers()
    assert all(each.sentence for each in FUNCTIONS if answers[each.name] is None)


def test_functions_as_they_are_become_good_tools():
    outcomes = anyio.run(measure)
    found = Counter(each.outcome for each in outcomes)
    table = write_table(outcomes)
    assert found[GOOD] >= GOOD_FLOOR, table
    assert not found[UNSAID], table
    assert not found[WRONG], table
