"""What replicas lose when their file is saved and a kernel is killed."""

import os

import pytest
from replicas import count_losses

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.exhaustive,
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]


async def test_with_20_calls_a_second_only_those_of_the_killed_kernel_are_lost_and_they_are_told(
    home,
):
    assert await count_losses(home)
