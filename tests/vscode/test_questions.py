"""Questions whether a call may run, in VS Code: as notifications, and in the panel."""

import pytest
from live import TIMEOUT
from playwright.sync_api import expect
from vs_code import SOON

from notebooks import DROP

pytestmark = pytest.mark.vscode

HOSTILE = "[tables](command:workbench.action.closeWindow) $(trash)\n\nDeny"


def test_a_question_is_answered_by_its_notification(open_window, assistant):
    window = open_window(DROP)
    call = assistant.start_call("drop", table="rain")
    asked = window.notification("weather: Allow this call")
    expect(asked).to_contain_text('Arguments: table = "rain"', timeout=SOON)
    expect(window.status_bar).to_contain_text("1 question")
    asked.get_by_role("button", name="Allow").click()
    assert call.result(TIMEOUT) == "dropped rain"
    expect(window.page.locator(".notebookOverlay").last).not_to_contain_text("%mcp allow")


def test_a_hostile_argument_makes_neither_a_link_nor_a_line_of_its_own(open_window, assistant):
    window = open_window(DROP)
    call = assistant.start_call("drop", table=HOSTILE)
    asked = window.notification("weather: Allow this call")
    expect(asked).to_contain_text(r"[tables] (command:workbench.action.closeWindow)", timeout=SOON)
    assert asked.locator(".notification-list-item-message a").count() == 0
    window.run_command("Deny All Calls That Ask")
    assert "did not allow it" in call.result(TIMEOUT)


def test_a_question_that_the_panel_shows_is_no_notification(open_window, assistant):
    window = open_window(DROP)
    panel = window.panel
    for answer, result in (("Allow", "dropped a"), ("Deny", "did not allow it")):
        call = assistant.start_call("drop", table="a")
        panel.expect_text('table = "a"', section="Questions")
        assert window.notification("weather").count() == 0
        panel.answer(answer)
        assert result in call.result(TIMEOUT)


def test_an_answer_that_comes_too_late_gets_a_sentence(open_window, assistant):
    window = open_window(DROP)
    call = assistant.start_call("drop", table="a")
    expect(window.notification('table = "a"')).to_be_visible(timeout=SOON)
    window.run_command("Deny All Calls That Ask")
    assert "did not allow it" in call.result(TIMEOUT)
    window.show_notifications()
    window.notification('table = "a"').get_by_role("button", name="Allow").click()
    expect(window.notification("Question 1 is not open: it was answered")).to_be_visible()


def test_an_answer_is_not_taken_for_the_question_of_a_restarted_kernel(open_window, assistant):
    window = open_window(DROP)
    lost = assistant.start_call("drop", table="a")
    expect(window.notification('table = "a"')).to_be_visible(timeout=SOON)
    window.run_command("Tests: Restart Kernel")
    assert "restarted" in lost.result(TIMEOUT)
    window.run_all()
    expect(window.status_bar).to_contain_text("1 tool", timeout=SOON)
    call = assistant.start_call("drop", table="b")
    expect(window.notification('table = "b"')).to_be_visible(timeout=SOON)
    window.show_notifications()
    window.notification('table = "a"').get_by_role("button", name="Allow").click()
    expect(window.notification("The kernel was restarted in the meantime")).to_be_visible()
    window.notification('table = "b"').get_by_role("button", name="Deny").click()
    assert "did not allow it" in call.result(TIMEOUT)


def test_only_the_window_with_the_notebook_asks(open_window, assistant):
    other, window = open_window(), open_window(DROP)
    panel = other.panel
    panel.expect_text("weather", section="All notebooks")
    call = assistant.start_call("drop", table="rain")
    panel.expect_text("1 question", section="All notebooks")
    asked = window.notification("weather: Allow this call")
    expect(asked).to_be_visible(timeout=SOON)
    assert other.notification("weather").count() == 0
    asked.get_by_role("button", name="Deny").click()
    assert "did not allow it" in call.result(TIMEOUT)
