"""What tests of several commands use."""

from forked_kernels import forked_kernels

__all__ = ["forked_kernels"]
