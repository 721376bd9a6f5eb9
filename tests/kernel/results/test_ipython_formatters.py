"""What the user registered with IPython's formatters comes before our own rules."""

from contents import Point, only_text

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.ipython_formatters import has_registered_format
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.settings.settings import Settings


def test_a_formatter_of_the_users_counts_for_a_displayed_table(pandas, formatter, converter):
    formatter.formatters["text/markdown"].for_type(pandas.DataFrame, lambda _: "**mine**")
    shown = Displayed(*converter.format_display(pandas.DataFrame({"a": [1]})))
    assert only_text(converter.make_result(None, [shown])) == "**mine**"


def test_html_that_the_user_registered_for_tables_counts(pandas, formatter, converter):
    formatter.formatters["text/html"].for_type(pandas.DataFrame, lambda _: "<b>mine</b>")
    assert only_text(converter.make_result(pandas.DataFrame({"a": [1]}), ())) == "**mine**"


def test_a_formatter_that_the_user_registered_counts(formatter):
    formatter.formatters["text/markdown"].for_type(Point, lambda point, *_: f"**P{point.x}**")
    converter = Converter(formatter.format, Settings())
    assert only_text(converter.make_result(Point(x=4), ())) == "**P4**"


def test_a_formatter_counts_that_is_registered_for_the_object_a_base_or_a_name(formatter):
    class Base:
        pass

    class Derived(Base):
        pass

    markdown = formatter.formatters["text/markdown"]
    converter = Converter(formatter.format, Settings())
    value = Derived()
    markdown.for_type_by_name(Base.__module__, Base.__name__, lambda *_: "by name")
    assert only_text(converter.make_result(value, ())) == "by name"
    markdown.for_type(Derived, lambda *_: "by class")
    assert only_text(converter.make_result(value, ())) == "by class"
    markdown.singleton_printers[id(value)] = lambda *_: "by identity"
    assert only_text(converter.make_result(value, ())) == "by identity"


def test_objects_are_rendered_whose_class_has_no_hash(formatter):
    class Meta(type):
        __hash__ = None

    class Odd(metaclass=Meta):
        def __repr__(self):
            return "odd"

    assert not has_registered_format(formatter.format, Odd())
