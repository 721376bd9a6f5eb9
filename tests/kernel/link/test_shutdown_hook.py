"""How the kernel shuts down is as before once nobody needs to be told of it."""

import pytest
from live import live_kernel


@pytest.fixture(scope="module")
def kernel(module_home):
    """A kernel without the extension."""
    with live_kernel(module_home) as kernel:
        yield kernel


def test_unloading_puts_back_how_the_kernel_shuts_down(kernel):
    show = "k = get_ipython().kernel\nprint('do_shutdown' in vars(k), k.do_shutdown)"
    before = kernel.ok(show).stdout
    assert before.startswith("False")
    kernel.ok("%load_ext mcp_notebook")
    kernel.ok("%reload_ext mcp_notebook")
    kernel.ok("%unload_ext mcp_notebook")
    assert kernel.ok(show).stdout == before


def test_who_wraps_the_shutdown_after_us_is_left_alone_by_an_unload(kernel):
    kernel.ok("%load_ext mcp_notebook")
    kernel.ok(
        "k, asked = get_ipython().kernel, []\nours = k.do_shutdown\n"
        "k.do_shutdown = lambda restart: (asked.append(restart), ours(restart))[1]"
    )
    kernel.ok("%unload_ext mcp_notebook")
    shown = kernel.ok("print(k.do_shutdown(True), asked)\nget_ipython().exit_now = False").stdout
    assert shown == "{'status': 'ok', 'restart': True} [True]\n"
    kernel.ok("del k.do_shutdown")
