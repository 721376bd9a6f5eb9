"""Values that no tool should return, and some do; sent through the whole way by the tests.

`ODD` makes each of them by name, in the process where it is needed.
"""

# What the linter finds wrong with these classes is what they are for.
# ruff: noqa: ARG002, ARG005, F601, ICN001, PLC0415, PLE0303, PLE0308, PLW0108, SIM115, SLOT000, T201

import array
import asyncio
import collections
import ctypes
import dataclasses
import decimal
import enum
import io
import math
import re
import socket
import sqlite3
import threading
import types
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

from pydantic import BaseModel

from mcp_notebook import Audio, Image, Resource, ResourceLink, Result, Text


class ReprRaises:
    def __repr__(self):
        raise RuntimeError("no repr today")


class ReprRaisesStrangely:
    def __repr__(self):
        raise SystemExit(3)


class ReprRecurses:
    def __repr__(self):
        return f"<{self!r}>"


class ReprIsNoText:
    def __repr__(self):
        return 7


class ReprIsHuge:
    def __repr__(self):
        return "x" * 10_000_000


class ReprIsBroken:
    def __repr__(self):
        return "\x00\ud800\x1b[31mred"


class ReprPrints:
    def __repr__(self):
        print("from repr")
        return "printed"


class LiesOfItsClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class SaysItIsADict:
    __class__ = dict


class SaysItIsAText:
    __class__ = str


class HasEverything:
    def __getattr__(self, name):
        return lambda *args, **kwargs: self


class HasNothing:
    def __getattribute__(self, name):
        raise ValueError(f"no {name}")


class EqualRaises:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no eq")

    def __bool__(self):
        raise RuntimeError("no bool")

    def __len__(self):
        raise RuntimeError("no len")

    def __iter__(self):
        raise RuntimeError("no iter")


class ListThatLies(list):
    def __len__(self):
        return 1_000_000

    def __iter__(self):
        raise RuntimeError("no iter")

    def __getitem__(self, index):
        raise IndexError(index)


class DictThatLies(dict):
    def __len__(self):
        return -1

    def __iter__(self):
        raise RuntimeError("no iter")

    def items(self):
        return None


class KeysWithoutValues(collections.abc.Mapping):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(["a", "b"])

    def __getitem__(self, key):
        raise KeyError(key)


class EvilText(str):
    def __str__(self):
        raise RuntimeError("no str")

    def __len__(self):
        return -1

    def __contains__(self, part):
        raise RuntimeError("no contains")

    def strip(self, *args):
        return 7

    def encode(self, *args):
        return None


class EvilInt(int):
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __int__ = __index__ = __repr__


class EvilFloat(float):
    def __float__(self):
        raise RuntimeError("no float")

    __repr__ = __str__ = __float__


class EvilBytes(bytes):
    def __bytes__(self):
        return 7

    def decode(self, *args):
        return 7

    def startswith(self, *args):
        raise RuntimeError("no startswith")


class BundleIsNoDict:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return 7


class BundleOfOddThings:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": 7, "text/plain": None, 5: 6, "text/html": b"<b>", "a/b+json": object()}


class PictureIsNone:
    def _repr_png_(self):
        return b"no picture"


class MarkdownIsNoText:
    def _repr_markdown_(self):
        return 7


class HtmlIsBroken:
    def _repr_html_(self):
        return "<table><td>\x00\ud800</b></script><script>" + "<div>" * 5_000


class JsonIsOdd:
    def _repr_json_(self):
        return {1: {2}, "x": math.nan, "y": object()}


class DisplayRaises:
    def _ipython_display_(self):
        raise RuntimeError("no display")


class ArrayRaises:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("no array")


class MetaWithoutName(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class ClassWithoutName(metaclass=MetaWithoutName):
    def __repr__(self):
        raise RuntimeError("no repr")


class ErrorWithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no str")

    __repr__ = __str__


class Colour(enum.Enum):
    RED = object()
    BLUE = "\ud800"


class Model(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    anything: Any = None

    def __repr__(self):
        raise RuntimeError("no repr")


@dataclasses.dataclass
class Node:
    next: Any = None


class PropertyRaises:
    @property
    def value(self):
        raise RuntimeError("no value")

    __dataclass_fields__ = {"value": dataclasses.field()}  # noqa: RUF012


class Signals:
    def __repr__(self):
        return str(Decimal("sNaN") + 1)


def _circular_list():
    value = []
    value.append(value)
    return value


def _circular_dict():
    value = {}
    value["self"] = value
    return value


def _circular_node():
    node = Node()
    node.next = node
    return node


def _circular_model():
    model = Model.model_construct()
    model.anything = model
    return model


def _deep(levels, wrap):
    value = None
    for _ in range(levels):
        value = wrap(value)
    return value


def _rows():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("select 1 as a, x'00ff' as b").fetchall()


def _endless():
    while True:
        yield "item"


def _fails_later():
    yield 1
    raise RuntimeError("no more")


async def _async_endless():
    while True:
        yield "item"


async def _async_fails_later():
    yield 1
    raise RuntimeError("no more")


async def _coroutine():
    return "waited for"


def _closed_coroutine():
    made = _coroutine()
    made.close()
    return made


def _frames(**kinds):
    import pandas as pd

    return pd.DataFrame(**kinds)


def _numpy():
    import numpy

    return numpy


def _image(mode, size):
    from PIL import Image as Pil

    return Pil.new(mode, size)


ODD: dict[str, Callable[[], Any]] = {
    **{
        type.__dict__["__name__"].__get__(kind): kind
        for kind in (
            *(ReprRaises, ReprRaisesStrangely, ReprRecurses, ReprIsNoText, ReprIsHuge),
            *(ReprIsBroken, ReprPrints, LiesOfItsClass, SaysItIsADict, SaysItIsAText),
            *(HasEverything, HasNothing, EqualRaises, BundleIsNoDict, BundleOfOddThings),
            *(PictureIsNone, MarkdownIsNoText, HtmlIsBroken, JsonIsOdd, DisplayRaises),
            *(ArrayRaises, ClassWithoutName, ErrorWithoutText, PropertyRaises, Signals),
            *(KeysWithoutValues, Mock, MagicMock, object, threading.Thread),
            *(socket.socket, decimal.Context, types.SimpleNamespace, weakref.WeakKeyDictionary),
        )
    },
    "a lock": threading.Lock,
    "a list that lies": lambda: ListThatLies([1]),
    "a dict that lies": lambda: DictThatLies(a=1),
    "an evil text": lambda: EvilText("evil"),
    "an evil int": lambda: EvilInt(5),
    "an evil float": lambda: EvilFloat(5),
    "evil bytes": lambda: EvilBytes(b"evil"),
    "evil things as keys": lambda: {EvilText("k"): 1, EvilInt(2): 2, ReprRaises(): 3},
    "a surrogate": lambda: "\ud800 and \udfff",
    "a surrogate as key": lambda: {"\ud800": "\udfff"},
    "controls": lambda: "".join(map(chr, range(32))) + "\x7f\x9b",
    "ansi": lambda: "\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link",
    "an endless ansi code": lambda: "\x1b]" + "x" * 100_000,
    "white space": lambda: " \n\t\u2028\u200b",
    "numbers that are none": lambda: [math.nan, math.inf, -math.inf, 1e308 * 10, -0.0],
    "a huge int": lambda: 10**5000,
    "huge ints": lambda: {"a": [10**5000, -(10**5000), 2**64]},
    "a huge int as key": lambda: {10**5000: 1},
    "a huge decimal": lambda: Decimal(10) ** 5000,
    "signals": lambda: [Decimal("sNaN"), Decimal("-Infinity"), Decimal("1E+999999")],
    "complex": lambda: [1j, complex(math.nan, math.inf)],
    "a circular list": _circular_list,
    "a circular dict": _circular_dict,
    "a circular dataclass": _circular_node,
    "a circular model": _circular_model,
    "deep lists": lambda: _deep(100_000, lambda value: [value]),
    "deep dicts": lambda: _deep(100_000, lambda value: {"a": value}),
    "deep tuples": lambda: _deep(100_000, lambda value: (value,)),
    "deep nodes": lambda: _deep(10_000, Node),
    "many keys": lambda: dict.fromkeys(range(30_000)),
    "a million keys": lambda: dict.fromkeys(range(1_000_000)),
    "odd keys": lambda: {1: 1, "1": 2, 1.5: 3, None: 4, (1, (2,)): 5, b"\xff": 6, True: 7},
    "same names": lambda: {"None": 1, None: 2, b"None": 3},
    "an enum of an object": lambda: Colour.RED,
    "an enum of a surrogate": lambda: Colour.BLUE,
    "a class": lambda: ReprRaises,
    "a class of enums": lambda: Colour,
    "a model's class": lambda: Model,
    "a dataclass' class": lambda: Node,
    "a class with a metaclass": lambda: ClassWithoutName,
    "a function": lambda: _rows,
    "a builtin": lambda: len,
    "a module": lambda: math,
    "ellipsis": lambda: [..., NotImplemented],
    "a type": lambda: list[int],
    "a coroutine": _closed_coroutine,
    "a list of coroutines": lambda: [_closed_coroutine()],
    "a generator": _endless,
    "a generator that fails": _fails_later,
    "an async generator": _async_endless,
    "an async generator that fails": _async_fails_later,
    "a list of generators": lambda: [_endless()],
    "a future": lambda: asyncio.Future(loop=asyncio.SelectorEventLoop()) and "made",
    "a file": lambda: io.BytesIO(b"file"),
    "an open file": lambda: Path(__file__).open("rb"),
    "a frame": lambda: __import__("sys")._getframe(),
    "a match": lambda: re.match("a", "a"),
    "a view": lambda: memoryview(b"\xff\x00"),
    "a released view": lambda: (view := memoryview(b"a"), view.release())[0],
    "an array": lambda: array.array("d", [math.nan]),
    "rows": _rows,
    "ctypes": lambda: [ctypes.c_int(5), ctypes.POINTER(ctypes.c_int)()],
    "a dead proxy": lambda: weakref.proxy(Node()),
    "an exception": lambda: ErrorWithoutText("x"),
    "a group": lambda: ExceptionGroup("group", [ErrorWithoutText("x")]),
    "an iterator": lambda: iter([1]),
    "views": lambda: [{}.keys(), {1: 2}.items(), range(10**12)],
    "a picture of nothing": lambda: b"\x89PNG\r\n\x1a\n",
    "a picture cut off": lambda: b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "no picture": lambda: Image(b"no picture"),
    "a picture of a lie": lambda: Image(b"GIF89a", "text/plain"),
    "a picture of text": lambda: Image("text"),
    "no sound": lambda: Audio("text"),
    "a block of odd fields": lambda: Text(7, audience=3, priority="x"),
    "a block of a surrogate": lambda: Text("\ud800", audience=("user", 7), priority=math.nan),
    "a block that is empty": lambda: Text(""),
    "a resource": lambda: Resource(object(), "no uri"),
    "a resource of text": lambda: Resource("\ud800", "\x00", mime_type=None),
    "a link": lambda: ResourceLink("", ""),
    "a link of odd fields": lambda: ResourceLink(7, None, size=math.nan),
    "a result of odd fields": lambda: Result(7, structured=object(), is_error="x", meta=None),
    "a result of nothing": lambda: Result([]),
    "a result in a result": lambda: Result([Result([Text("inner")])]),
    "a result of a surrogate": lambda: Result(["\ud800"], structured={"\ud800": math.nan}),
    "a result that is a list": lambda: Result([], structured=[1]),
    "a result of bad meta": lambda: Result(["a"], meta={"io.modelcontextprotocol/x": {1}}),
    "a result of odd meta": lambda: Result(["a"], meta=7),
    "no rows": lambda: _frames(columns=["a", "b"]),
    "no columns": lambda: _frames(index=range(5)),
    "no rows and columns": lambda: _frames(),
    "odd cells": lambda: _frames(data={"a": [ReprRaises(), EvilText("x"), [1], None, 10**5000]}),
    "odd columns": lambda: _frames(data=[[1, 2, 3]], columns=["\ud800", None, ("a", 1)]),
    "twice the same column": lambda: _frames(data=[[1, 2]], columns=["a", "a"]),
    "frames in frames": lambda: _frames(data={"a": [_frames(), _frames()]}),
    "a wide frame": lambda: _frames(data=[range(2_000)]),
    "a scalar array": lambda: _numpy().array(5),
    "an empty array": lambda: _numpy().zeros((0, 3)),
    "an array of objects": lambda: _numpy().array([ReprRaises(), None], dtype=object),
    "a masked array": lambda: _numpy().ma.masked_all((2, 2)),
    "a structured array": lambda: _numpy().zeros(2, dtype=[("a", "i4"), ("b", "U3")]),
    "a time that is none": lambda: _numpy().datetime64("NaT"),
    "half and long": lambda: [_numpy().float16("inf"), _numpy().longdouble(1) / 3],
    "a picture without pixels": lambda: _image("RGB", (0, 5)),
    "a wide picture": lambda: _image("1", (30_000, 1)),
    "a picture of floats": lambda: _image("F", (3, 3)),
    "a picture in a list": lambda: [_image("CMYK", (3, 3)), ReprRaises(), None],
}
