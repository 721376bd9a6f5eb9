"""Widgets of anywidget as pages: which have one, and that nothing of them ends their script."""

import pytest
import traitlets

from mcp_notebook.kernel.results.views.widget_page import describe_widget

pytestmark = pytest.mark.needs("anywidget")

ESM = "function render({ model, el }) { el.textContent = model.get('value') }\n"


@pytest.fixture
def page_of():
    anywidget = pytest.importorskip("anywidget")

    def page_of(esm, value=3):
        class Widget(anywidget.AnyWidget):
            _esm = esm
            _css = "b { color: red }</style><script>1"
            value = traitlets.Any().tag(sync=True)

        original = describe_widget(Widget(value=value))
        return None if original is None else original.formats[0].content()

    return page_of


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("export default { render };", "const __widget = { render };\n;show(__widget);"),
        ("const w = { render }; export { w as default };", ";show(w);"),
        ("const w={render};export{w as default,render as other}", ";show(w);"),
        ("export default () => ({ render })", "const __widget = () => ({ render })\n;show("),
    ],
)
def test_a_page_shows_the_default_export_of_its_script(page_of, end, shown):
    assert shown in page_of(ESM + end)


@pytest.mark.parametrize(
    "esm",
    [
        f"import x from 'https://esm.sh/x';\n{ESM}export default {{ render }}",
        f"const x = await import('https://esm.sh/x');\n{ESM}export default {{ render }}",
        "https://example.org/widget.js",
        ESM,
    ],
)
def test_a_script_that_loads_others_or_exports_nothing_has_no_page(page_of, esm):
    assert page_of(esm) is None


def test_a_widget_that_holds_other_widgets_has_no_page(page_of):
    assert page_of(f"{ESM}export default {{ render }}", ["IPY_MODEL_5"]) is None


def test_values_and_scripts_do_not_end_their_elements(page_of):
    page = page_of(f"{ESM}'</script><!--'\nexport default {{ render }}", "</script><script>1")
    assert page.count("</script>") == 2
    assert page.count("</style>") == 1
    assert "<!--" not in page
    assert '{"$base64": "YWI="}'.replace('"', '\\"') in page_of(
        f"{ESM}export default {{ render }}", b"ab"
    )


def test_other_values_are_no_widgets():
    assert describe_widget(5) is None
