"""Texts of a client that would be code if anything took them for it, for hypothesis.

Each canary calls `fired`, which a test defines where the code would run.
"""

from hypothesis import strategies as st

CANARY = "fired.append(1)"
_PARTS = (
    CANARY,
    f"!{CANARY}",
    f"{{{CANARY}}}",
    f"'+str({CANARY})+'",
    f'"+str({CANARY})+"',
    f"\n{CANARY}\n",
    f"\u2028{CANARY}\u2029",
    f"\x85{CANARY}\r",
    f"\\\n{CANARY}",
    f"$(python -c {CANARY})",
    "!", "?", "%", "$", "$fired", "{", "}", "{{", "}}", "[", "]", ":", "#", "'", '"', "\\",
    "\n", "\x00", "\u2028", "\x85", "\ud800", "\xfc", " ", "class", "a", "MASK",
)  # fmt: skip


def hostile_texts() -> st.SearchStrategy[str]:
    """Texts of such parts, and any others."""
    return st.lists(st.sampled_from(_PARTS), max_size=6).map("".join) | st.text()


def objects() -> st.SearchStrategy[dict[str, object]]:
    """Objects in JSON with names and values of such texts."""
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | hostile_texts(),
        lambda items: (
            st.lists(items, max_size=3) | st.dictionaries(hostile_texts(), items, max_size=3)
        ),
        max_leaves=8,
    )
    any_objects = st.dictionaries(hostile_texts(), values, max_size=4)
    # IPython leaves out what follows "!", and the quotes no longer match.
    unquoted = st.builds(
        lambda name, rest: {f"{name}!": f"+str({CANARY})#", **rest}, hostile_texts(), any_objects
    )
    return any_objects | unquoted
