"""What HTML shows besides text and pictures, found without fetching anything."""

import base64

import pytest

from mcp_notebook.kernel.results.html.media import MAX_ADDRESS, Medium, find_media

VIDEO = base64.b64encode(b"a video").decode()


@pytest.mark.parametrize(
    ("html", "media"),
    [
        (
            "<video src='https://x.org/a.mp4'></video>",
            [Medium("a video, which is not fetched: https://x.org/a.mp4")],
        ),
        (
            "<audio><source src='a.mp3'><source src='a.ogg'></audio><source src='b.mp3'>",
            [
                Medium("a sound, which is not fetched: a.mp3"),
                Medium("a sound, which is not fetched: a.ogg"),
            ],
        ),
        (
            "<iframe srcdoc='&lt;p&gt;a&lt;/p&gt;'></iframe>",
            [Medium("a page within the page", page="<p>a</p>")],
        ),
        (
            f"<video src='data:video/mp4;base64,{VIDEO}'>",
            [Medium("a video, video/mp4, 7 bytes", data=b"a video", mime_type="video/mp4")],
        ),
        (
            "<embed src='data:,a%20b'>",
            [
                Medium(
                    "something embedded, text/plain, 3 bytes", data=b"a b", mime_type="text/plain"
                )
            ],
        ),
        ("<audio src='data:audio/wav;base64,AA'>", []),
        ("<img src='a.png'><video></video><p>a</p>", []),
    ],
)
def test_media_are_described_in_order(html, media):
    assert find_media(html) == media


def test_base64_that_is_broken_is_an_empty_medium():
    [medium] = find_media("<video src='data:video/mp4;base64,A'>")
    assert (medium.note, medium.data) == ("a video, video/mp4, 0 bytes", b"")


def test_a_long_address_is_cut():
    [medium] = find_media(f"<video src='https://x.org/{'a' * 10_000}'>")
    assert len(medium.note) < MAX_ADDRESS + 50


@pytest.mark.parametrize(
    "html",
    ["<video", "<source src=x>", '<video><source src="data:;base64,!!"></video>', "<iframe>", ""],
)
def test_broken_media_do_no_harm(html):
    assert all(medium.data == b"" for medium in find_media(html))
