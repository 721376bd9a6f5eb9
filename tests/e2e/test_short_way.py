"""The short way answers a request as the SDK does, whatever it is.

Requests from a seed (`generated_requests`), plain ones, odd ones and broken ones, go to a server
with the short way and to one without it (`short_way`): status, headers, messages and what the
observers of calls hear have to be equal. ``pytest -m slow`` makes 2,000 of them, ``pytest -m
exhaustive`` 100,000; the report says how many were answered on which way.
"""

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest
from generated_requests import DECLARED, TOOLS, make_http_request, make_line
from live import TIMEOUT, kernel_with, record_of
from short_way import Comparison, both_sides, opened_pipes

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]

FEW, SEVERAL = 60, 400


kernel = kernel_with(TOOLS, *DECLARED)
"""A kernel with tools whose results depend on nothing but their arguments, and all else that can be
listed."""


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR, "mcp")
    caplog.set_level(logging.ERROR, "mcp_notebook")


def _count(many):
    slow = pytest.param(SEVERAL, marks=pytest.mark.slow)
    exhaustive = pytest.param(many, marks=[pytest.mark.exhaustive, pytest.mark.timeout(1200)])
    return pytest.mark.parametrize("count", [FEW, slow, exhaustive])


async def _compare_over_http(kernel, era, count, record_property, **options):
    async with both_sides([record_of(kernel)], kernel.home, **options) as sides:
        comparison = Comparison(sides)
        for seed in range(count):
            request = make_http_request(Random(seed), era)
            answers = await asyncio.gather(*(side.ask(request) for side in sides))
            comparison.note(request, answers)
    comparison.check(record_property)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@_count(30_000)
async def test_each_request_over_http_is_answered_alike(kernel, era, count, record_property):
    await _compare_over_http(kernel, era, count, record_property)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("count", [FEW, pytest.param(SEVERAL // 2, marks=pytest.mark.slow)])
async def test_so_are_those_to_a_bridge_with_pages_and_tools_of_its_own(
    kernel, era, count, record_property
):
    options = {"page_size": 3, "meta_tools": True}
    await _compare_over_http(kernel, era, count, record_property, **options)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@_count(20_000)
async def test_each_line_over_stdio_is_answered_alike(kernel, era, count, record_property):
    async with (
        both_sides([record_of(kernel)], kernel.home, with_http=False) as sides,
        AsyncExitStack() as stack,
    ):
        pipes = [await stack.enter_async_context(opened_pipes(side, era)) for side in sides]
        comparison = Comparison(sides)
        for seed in range(count):
            request = make_line(Random(seed), era)
            with anyio.fail_after(TIMEOUT):
                answers = await asyncio.gather(*(each.exchange(request.body) for each in pipes))
            comparison.note(request, answers)
    comparison.check(record_property)
