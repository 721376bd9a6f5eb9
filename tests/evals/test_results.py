"""What a model reads of results, and which questions it can answer from that."""

import pytest
from measure_results import measure, write_reprs, write_results
from results_pool import NAMES, QUESTIONS, make_results


@pytest.fixture(scope="module")
def figures():
    return {"mcp-notebook": measure(write_results()), "repr": measure(write_reprs())}


def test_the_pool_has_questions_about_each_result():
    assert {question.result for question in QUESTIONS} == set(NAMES)
    assert len({(each.result, each.text) for each in QUESTIONS}) == len(QUESTIONS)


def test_every_question_is_answered_in_half_the_characters_of_plain_reprs(figures):
    ours, plain = figures["mcp-notebook"], figures["repr"]
    assert ours.results == plain.results == len(make_results()) >= 20
    assert ours.unanswered == ()
    assert ours.characters < plain.characters / 2
    assert ours.tokens < plain.tokens / 2
    assert plain.answered < 0.7 * plain.questions
