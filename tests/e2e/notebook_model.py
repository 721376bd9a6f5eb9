"""What notebooks should offer and what calls should answer: the model of `test_sequences`.

Pure: dicts and a few rules, as the README tells them. It knows nothing of processes, links or MCP.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

# -- functions and what their calls answer ---------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a call answers."""

    text: str
    """The whole text of a value; a part of an error's."""
    kind: Literal["value", "error"]
    """`unknown`: a protocol error, not a result."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    hint: Literal["int", "str", "list[str]"]
    default: str | None = None

    @property
    def source(self) -> str:
        """As it stands in the signature."""
        return f"{self.name}: {self.hint}" + (f" = {self.default!r}" if self.default else "")

    @property
    def schema(self) -> dict[str, Any]:
        """What clients are told of it."""
        default = {"default": self.default} if self.default else {}
        schemas: dict[str, dict[str, Any]] = {
            "int": {"type": "integer"},
            "str": {"type": "string"},
            "list[str]": {"items": {"type": "string"}, "type": "array"},
        }
        return default | schemas[self.hint]

    def complaint(self, value: object) -> str | None:
        """Return how a refusal of a value begins, None if it is taken."""
        if self.hint != "list[str]":
            taken = isinstance(value, int if self.hint == "int" else str)
            return None if taken else f"{self.name}: got "
        if not isinstance(value, list):
            return f"{self.name}: got "
        wrong = [index for index, item in enumerate(value) if not isinstance(item, str)]
        return f"{self.name}[{wrong[0]}]: got " if wrong else None


@dataclass(frozen=True)
class Shape:
    """A signature."""

    parameters: tuple[Parameter, ...]
    fitting: Mapping[str, Any] = field(hash=False)
    """Arguments that it takes."""

    @property
    def schema(self) -> dict[str, Any]:
        """Its input schema."""
        properties = {item.name: item.schema for item in self.parameters}
        properties["ticket"] = {"default": "", "type": "string"}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [item.name for item in self.parameters if item.default is None]
        return {**schema, "required": required} if required else schema

    def complaint(self, arguments: Mapping[str, Any]) -> str | None:
        """Return a part of what a refusal of these arguments says, None if they are taken."""
        for item in self.parameters:
            if item.name not in arguments:
                if item.default is None:
                    return f"{item.name}: missing"
            elif complaint := item.complaint(arguments[item.name]):
                return complaint
        known = {item.name for item in self.parameters} | {"ticket"}
        return next((f"{name}: no such parameter" for name in arguments if name not in known), None)

    def shown(self, arguments: Mapping[str, Any]) -> str:
        """Return arguments that are taken as functions of this shape show them."""
        values = {item.name: arguments.get(item.name, item.default) for item in self.parameters}
        return " ".join(f"{name}={value!r}" for name, value in values.items())


_X, _Y = Parameter("x", "int"), Parameter("y", "str", "b")
_ITEMS = Parameter("items", "list[str]")
SHAPES = (
    Shape((), {}),
    Shape((_X,), {"x": 5}),
    Shape((_X, _Y), {"x": -1, "y": "ü\n"}),
    Shape((_ITEMS,), {"items": ["a", ""]}),
)
ARGUMENTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"x": 5},
    {"x": "five"},
    {"x": 5, "y": 7},
    {"y": "c"},
    {"items": ["a", 1]},
    {"items": "a"},
    {"nothing": None},
)
"""Arguments that fit some shapes."""


@dataclass(frozen=True)
class Options:
    """What is said about a tool besides its function."""

    name: str | None = None
    run: Literal["main", "thread"] = "main"


@dataclass(frozen=True)
class Function:
    """A function in a notebook; each definition is another one, by its number."""

    name: str
    number: int
    shape: Shape
    is_coroutine: bool
    fails: bool
    described: bool
    """Its docstring has its number, so that clients see each redefinition."""
    mark: Options | None = None
    """What ``@mcp_tool`` left on it."""

    @property
    def description(self) -> str:
        """Its docstring."""
        return f"Function {self.number}." if self.described else "A function."

    @property
    def source(self) -> str:
        """Its code."""
        prefix, wait = (
            ("async ", "await desk.wait_async") if self.is_coroutine else ("", "desk.wait")
        )
        parameters = ", ".join(
            [*(item.source for item in self.shape.parameters), "ticket: str = ''"]
        )
        shown = " ".join(f"{item.name}={{{item.name}!r}}" for item in self.shape.parameters)
        text = f'f"{self.number}({shown})"'
        return (
            f"{prefix}def {self.name}({parameters}):\n"
            f"    '{self.description}'\n"
            "    import desk\n"
            "    if ticket:\n"
            f"        {wait}(ticket)\n"
            f"    {f'raise ValueError({text})' if self.fails else f'return {text}'}\n"
        )

    def answer(self, arguments: Mapping[str, Any]) -> Outcome:
        """Return what a call with these arguments answers, sooner or later."""
        complaint = self.shape.complaint(arguments)
        if complaint is not None:
            return Outcome(complaint, "error")
        text = f"{self.number}({self.shape.shown(arguments)})"
        return Outcome(f"ValueError: {text}", "error") if self.fails else Outcome(text, "value")

    def waits(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call with these arguments gets as far as to wait."""
        return bool(arguments.get("ticket")) and self.shape.complaint(arguments) is None


@dataclass(frozen=True)
class Tool:
    """A function that is offered."""

    function: Function
    options: Options

    @property
    def name(self) -> str:
        """Its name in its notebook."""
        return self.options.name or self.function.name

    @property
    def holds_main(self) -> bool:
        """Whether its calls keep the main thread."""
        return self.options.run == "main" and not self.function.is_coroutine


# -- a notebook ------------------------------------------------------------------------------------


class Notebook:
    """One kernel: its variables and its tools, in the order of their definition."""

    def __init__(self) -> None:
        self.variables: dict[str, Function | None] = {}
        """Functions by name; None: something else."""
        self.declared: dict[str, Tool | None] = {}
        """Tools by name; None: a prompt."""
        self.loaded = False

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools by name."""
        return {name: tool for name, tool in self.declared.items() if tool is not None}

    @property
    def prompts(self) -> list[str]:
        """The names of the prompts."""
        return [name for name, tool in self.declared.items() if tool is None]

    def define(self, function: Function, offered: Options | None = None) -> None:
        """A cell defines a function: as a tool, or (None) plainly."""
        self.variables[function.name] = function
        if offered is not None:
            self.offer(function, offered)
        self.follow()

    def offer(self, function: Function, options: Options) -> None:
        """Make a function a tool; one of its name gives its place to it."""
        tool = Tool(function, options)
        self.declared[tool.name] = tool

    def prompt(self, name: str) -> None:
        """A cell declares a prompt; a tool of its name gives its place to it."""
        self.declared[name] = None

    def follow(self) -> None:
        """Each tool follows its variable."""
        before, self.declared = self.declared, {}
        for name, tool in before.items():
            if tool is None:
                self.declared[name] = None
                continue
            function = self.variables.get(tool.function.name)
            if function is not None:
                same = function is tool.function
                # A decorated redefinition says all options anew.
                options = tool.options if same else function.mark or tool.options
                self.offer(function, options)

    def load(self) -> None:
        """``%load_ext``: decorated functions become tools."""
        self.loaded = True
        for function in self.variables.values():
            if function is not None and function.mark is not None:
                self.offer(function, function.mark)

    def unload(self) -> None:
        """``%unload_ext``."""
        self.loaded = False
        self.declared = {}

    def restart(self) -> None:
        """A new process, with nothing in it."""
        self.unload()
        self.variables = {}


# -- a bridge --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """What a client is told of a tool."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)


class Joined:
    """What one bridge offers: the tools of all notebooks, in the order in which they came."""

    def __init__(self) -> None:
        self._labels: dict[Notebook, str] = {}

    def come(self, notebook: Notebook, label: str) -> None:
        """A notebook is there; its label gets a number if another has it."""
        taken = self._labels.values()
        self._labels[notebook] = f"{label}-2" if label in taken else label

    def go(self, notebook: Notebook) -> None:
        """A notebook is gone."""
        self._labels.pop(notebook, None)

    @property
    def names(self) -> dict[str, tuple[Notebook, Tool]]:
        """All tools by the name they are listed under, in order."""
        offers = Counter(name for notebook in self._labels for name in notebook.tools)
        return {
            name if offers[name] == 1 else f"{label}_{name}": (notebook, tool)
            for notebook, label in self._labels.items()
            for name, tool in notebook.tools.items()
        }

    @property
    def full_names(self) -> dict[str, tuple[Notebook, Tool]]:
        """All tools by the names that can always be called."""
        return {
            f"{label}{separator}{name}": (notebook, tool)
            for notebook, label in self._labels.items()
            for name, tool in notebook.tools.items()
            for separator in "_."
        }

    @property
    def listed(self) -> tuple[Listed, ...]:
        """What clients see."""
        return tuple(
            Listed(name, tool.function.description, tool.function.shape.schema)
            for name, (_, tool) in self.names.items()
        )

    def find(self, name: str) -> tuple[Notebook, Tool] | Outcome:
        """Return the tool that a name means, or what a call of it answers."""
        found = self.names.get(name) or self.full_names.get(name)
        if found is not None:
            return found
        if any(name in notebook.tools for notebook in self._labels):
            return Outcome(f"Several open notebooks have a tool {name!r}", "error")
        if any(
            name in (prompt, f"{label}_{prompt}", f"{label}.{prompt}")
            for notebook, label in self._labels.items()
            for prompt in notebook.prompts
        ):
            return Outcome(f"{name!r} is a prompt, not a tool", "error")
        return Outcome(f"Unknown tool: {name!r}", "error")


def marked(function: Function, options: Options) -> Function:
    """Return a function as ``@mcp_tool`` leaves it."""
    return replace(function, mark=options)
