"""What a model reads of sixty results, and which questions it can answer from that."""

import pytest
from measure_results import measure, measure_here
from results_pool import NAMES, QUESTIONS, Question, make_results


@pytest.fixture(scope="module")
def figures():
    return measure_here()


def test_the_pool_has_sixty_results_and_questions_about_each():
    assert len(NAMES) == 60
    assert {question.result for question in QUESTIONS} == set(NAMES)
    assert len({(each.result, each.text) for each in QUESTIONS}) == len(QUESTIONS) >= 120


def test_every_question_is_answered_in_half_the_characters_of_plain_reprs(figures):
    ours, plain = figures["mcp-notebook"], figures["repr"]
    assert ours.results == plain.results == len(make_results()) >= 45
    assert ours.unanswered == ()
    assert ours.characters < plain.characters / 2
    assert ours.tokens < plain.tokens / 2
    assert plain.answered < 0.7 * plain.questions


def test_an_answer_is_missed_where_it_is_not_in_the_text():
    question = Question("orders", "How many rows?", (r"1,?000 rows",))
    assert question.is_answered("DataFrame: 1,000 rows x 8 columns")
    assert not question.is_answered("DataFrame: 10,000 lines")
    assert measure({"orders": "1,000 rows"}).answered == 1
