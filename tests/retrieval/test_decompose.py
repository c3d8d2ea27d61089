import pytest

from tagframe.errors import AnswerRejected
from tagframe.lm import LM
from tagframe.retrieval.decompose import decompose_with, parse_subqueries
from tagframe.retrieval.question import Question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many singers do we have?", ("singers",)),
        ("What are the names of all European countries?", ("European countries:names", "European countries")),
        ("Show each singer's birth year", ("singer", "singer:birth year")),
        ("What's the price?", ("price",)),
        ("Which of these?", ()),
    ],
)
def test_rules(question, expected):
    assert Question.of(question).subqueries == expected


def test_quoted_text_is_kept_as_values():
    assert Question.of("Who wrote \"The Great Gatsby\" or 'Dracula'?").quoted == ("The Great Gatsby", "Dracula")


def test_an_apostrophe_is_no_quotation_mark():
    assert Question.of("What is the singer's name in the teams' list?").quoted == ()


def test_a_model_takes_the_question_apart(server):
    server.answers = "<sub_c>trip:id</sub_c>\n<sub_c>station : dock count</sub_c><FIN></FIN>"
    lm = LM("openai/test", api_base=server.url, api_key="none")
    found = decompose_with(lm, Question.of("What is the id of the trip that started from the station with most docks?"))
    assert found.subqueries == ("trip:id", "station : dock count")
    assert found.origin == "model"
    assert "started from the station with most docks" in server.requests[0].prompt


def test_nonsense_from_the_model_leaves_the_rules(server):
    server.answers = "I would rather talk about the weather."
    lm = LM("openai/test", api_base=server.url, api_key="none")
    with pytest.warns(UserWarning, match="decomposed by rules"):
        found = decompose_with(lm, Question.of("How many singers do we have?"))
    assert found.subqueries == ("singers",)
    assert found.origin == "rules"


def test_untagged_answers_are_rejected_with_the_way_out():
    with pytest.raises(AnswerRejected, match="sub_c"):
        parse_subqueries("trip:id, station")
