"""Tokens as OpenAI's models count them, if tiktoken is installed; otherwise estimated."""

from functools import cache

from mcp_notebook.check import report

VOCABULARY = "o200k_base"


@cache
def load_tokenizer():
    """Return tiktoken's tokenizer; None if it is not installed or has no vocabulary."""
    try:
        import tiktoken  # noqa: PLC0415 - optional

        return tiktoken.get_encoding(VOCABULARY).encode_ordinary
    except Exception:  # noqa: BLE001 - not installed, no network, no folder to store it
        return None


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text."""
    tokenize = load_tokenizer()
    return report.count_tokens(text) if tokenize is None else len(tokenize(text))
