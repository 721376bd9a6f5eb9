"""Objects of any class: what they say of themselves."""


class OnlyStr:
    def __str__(self):
        return "P at 1"


def test_an_object_that_has_only_a_str_is_that(to_text):
    assert to_text(OnlyStr()) == "P at 1"
    assert to_text([OnlyStr()]) == '["P at 1"]'
    assert to_text({"p": OnlyStr()}) == '{"p": "P at 1"}'


def test_a_repr_that_was_written_comes_before_the_str(to_text):
    class Both(OnlyStr):
        def __repr__(self):
            return "P(1)"

    assert to_text(Both()) == "P(1)"
    assert to_text([Both()]) == '["P(1)"]'


def test_a_formatter_for_plain_text_comes_before_the_str(to_text, formatter):
    plain = formatter.formatters["text/plain"]
    plain.for_type(OnlyStr, lambda _value, printer, _cycle: printer.text("registered"))
    assert to_text(OnlyStr()) == "registered"


def test_html_of_a_class_in_a_function_comes_before_its_name(to_text):
    class Place(OnlyStr):
        def _repr_html_(self):
            return "<p>Rome</p>"

    assert to_text(Place()) == "Rome"


def test_a_str_that_fails_is_a_sentence(to_text):
    class Broken:
        def __str__(self):
            raise SystemExit("no")

    assert to_text(Broken()) == "A value of type Broken cannot be shown: SystemExit: no"
    assert "whose repr failed: SystemExit: no" in to_text([Broken()])


def test_an_object_that_says_nothing_is_its_name(to_text):
    assert to_text(object()).startswith("<object at 0x")
