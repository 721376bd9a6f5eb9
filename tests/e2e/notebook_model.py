"""What notebooks should offer and what calls should answer: the model of `test_sequences`.

Pure: dicts and a few rules, as the README tells them. It knows nothing of processes, links or MCP.
To get a prompt and to read a resource are calls as well.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

Kind: TypeAlias = Literal["tool", "prompt", "resource"]
KINDS: tuple[Kind, ...] = ("tool", "prompt", "resource")

# -- functions and what their calls answer ---------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a call answers."""

    text: str
    """The whole text of a value; a part of an error's."""
    kind: Literal["value", "error"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    hint: Literal["int", "str", "list[str]", "Literal['small', 'large']"]
    default: str | None = None

    @property
    def source(self) -> str:
        """As it stands in the signature."""
        hint = self.hint.replace("Literal", "__import__('typing').Literal")  # lost in a reset
        return f"{self.name}: {hint}" + (f" = {self.default!r}" if self.default else "")

    @property
    def schema(self) -> dict[str, Any]:
        """What clients are told of it."""
        default = {"default": self.default} if self.default else {}
        schemas: dict[str, dict[str, Any]] = {
            "int": {"type": "integer"},
            "str": {"type": "string"},
            "list[str]": {"items": {"type": "string"}, "type": "array"},
            "Literal['small', 'large']": {"enum": ["small", "large"], "type": "string"},
        }
        return default | schemas[self.hint]

    @property
    def completions(self) -> list[str]:
        """The values that clients can choose from."""
        return ["small", "large"] if self.hint.startswith("Literal") else []

    def read(self, text: str) -> Any:
        """Return the value that a text of a form stands for, None for one that was left empty."""
        if self.hint == "str":
            return text
        if not text.strip():
            return None
        if self.hint == "int":
            return int(text) if text.lstrip("-").isdigit() else text
        if self.hint == "list[str]":
            is_json = text.startswith("[")
            return json.loads(text) if is_json else [part.strip() for part in text.split(",")]
        return text

    def complaint(self, value: object) -> str | None:
        """Return how a refusal of a value begins, None if it is taken."""
        if self.completions:
            return None if value in self.completions else f"{self.name}: got "
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
    has_ticket: bool = True
    """Whether its calls can wait."""

    @property
    def schema(self) -> dict[str, Any]:
        """Its input schema."""
        properties = {item.name: item.schema for item in self.parameters}
        if self.has_ticket:
            properties["ticket"] = {"default": "", "type": "string"}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**schema, "required": [*self.required]} if self.required else schema

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without a default."""
        return tuple(item.name for item in self.parameters if item.default is None)

    @property
    def optional(self) -> tuple[str, ...]:
        """The other parameters."""
        names = (item.name for item in self.parameters if item.default is not None)
        return (*names, "ticket") if self.has_ticket else (*names,)

    def read(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the values that the texts of a form, or of a URI, stand for."""
        hints = {item.name: item for item in self.parameters}
        values = {
            name: hints[name].read(text) if name in hints else text for name, text in texts.items()
        }
        return {name: value for name, value in values.items() if value is not None}

    def complaint(self, arguments: Mapping[str, Any]) -> str | None:
        """Return a part of what a refusal of these arguments says, None if they are taken."""
        for item in self.parameters:
            if item.name not in arguments:
                if item.default is None:
                    return f"{item.name}: missing"
            elif complaint := item.complaint(arguments[item.name]):
                return complaint
        known = {*self.required, *self.optional}
        return next((f"{name}: no such parameter" for name in arguments if name not in known), None)

    def shown(self, arguments: Mapping[str, Any]) -> str:
        """Return arguments that are taken as functions of this shape show them."""
        values = {item.name: arguments.get(item.name, item.default) for item in self.parameters}
        return " ".join(f"{name}={value!r}" for name, value in values.items())


_X, _Y = Parameter("x", "int"), Parameter("y", "str", "b")
_ITEMS = Parameter("items", "list[str]")
_SIZE = Parameter("size", "Literal['small', 'large']")
SHAPES = (
    Shape((), {}),
    Shape((_X,), {"x": 5}),
    Shape((_X, _Y), {"x": -1, "y": "ü\n"}),
    Shape((_ITEMS,), {"items": ["a", ""]}),
    Shape((_SIZE,), {"size": "large"}),
)
ARGUMENTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"x": 5},
    {"x": "five"},
    {"x": 5, "y": 7},
    {"y": "c"},
    {"items": ["a", 1]},
    {"items": "a"},
    {"size": "medium"},
    {"nothing": "z"},
)
"""Arguments that fit some shapes."""


def write_texts(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return arguments as a form has them."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in arguments.items()
    }


@dataclass(frozen=True)
class Uri:
    """The URI of a resource, with variables."""

    word: str
    """Which one it is."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def template(self) -> str:
        """As it is declared, and listed."""
        path = "".join(f"/{{{name}}}" for name in self.required)
        return f"data://{self.word}{path}" + (
            f"{{?{','.join(self.optional)}}}" if self.optional else ""
        )

    def fits(self, shape: Shape) -> bool:
        """Whether the variables are the parameters of a function."""
        return (
            {*shape.required, *shape.optional} >= {*self.required, *self.optional}
            and {*shape.required} <= {*self.required}
            and not {*shape.required} & {*self.optional}
        )


def fill(template: str, texts: Mapping[str, str]) -> str:
    """Return a URI with values, of which those of the path must not be missing."""

    def write(match: re.Match[str]) -> str:
        names = match[1].removeprefix("?").split(",")
        if not match[1].startswith("?"):
            return quote(texts[names[0]], safe="")
        query = [f"{name}={quote(texts[name], safe='')}" for name in names if name in texts]
        return "?" + "&".join(query) if query else ""

    return re.sub(r"\{([^}]*)\}", write, template)


def list_variables(template: str) -> dict[str, bool]:
    """Return the variables of a template, each with whether its value may be missing."""
    return {
        name: part.startswith("?")
        for part in re.findall(r"\{([^}]*)\}", template)
        for name in part.removeprefix("?").split(",")
    }


@dataclass(frozen=True)
class Options:
    """What is said about a tool, a prompt or a resource besides its function."""

    name: str | None = None
    run: Literal["main", "thread"] = "main"
    kind: Kind = "tool"
    uri: Uri | None = None
    """Of a resource."""


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
    """What ``@mcp_tool``, say, left on it."""
    is_text: bool = False
    """It is made of the Markdown of a prompt."""

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

    @property
    def text(self) -> str:
        """Its Markdown, if it is a prompt's."""
        fields = " ".join(f"{item.name}={{{item.name}}}" for item in self.shape.parameters)
        return f"# {self.description}\n\n{self.number} {fields}".strip()

    def answer(self, arguments: Mapping[str, Any]) -> Outcome:
        """Return what a call with these arguments answers, sooner or later."""
        complaint = self.shape.complaint(arguments)
        if complaint is not None:
            return Outcome(complaint, "error")
        if self.is_text:
            values = {item.name: arguments.get(item.name, item.default) for item in self.parameters}
            return Outcome(self.text.format(**{k: _write(v) for k, v in values.items()}), "value")
        text = f"{self.number}({self.shape.shown(arguments)})"
        return Outcome(f"ValueError: {text}", "error") if self.fails else Outcome(text, "value")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of its shape."""
        return self.shape.parameters

    def waits(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call with these arguments gets as far as to wait."""
        return bool(arguments.get("ticket")) and self.shape.complaint(arguments) is None


def _write(value: object) -> str:
    """Return a value as the text of a prompt has it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Tool:
    """A function that is offered: as a tool, a prompt or a resource."""

    function: Function
    options: Options

    @property
    def name(self) -> str:
        """Its name in its notebook."""
        return self.options.name or self.function.name

    @property
    def kind(self) -> Kind:
        """What it is offered as."""
        return self.options.kind

    @property
    def template(self) -> str:
        """The URI of a resource."""
        assert self.options.uri is not None
        return self.options.uri.template

    def listed(self, name: str, uri: str) -> "Listed":
        """Return it as clients see it, under a name, or a URI."""
        description, shape = self.function.description, self.function.shape
        if self.kind == "tool":
            return Listed(name, description, shape.schema)
        if self.kind == "resource":
            return Listed(uri, description, self.name)
        names = [item.name for item in shape.parameters] + ["ticket"] * shape.has_ticket
        return Listed(name, description, {name: name in shape.required for name in names})

    def answer(self, arguments: Mapping[str, Any]) -> Outcome:
        """Return what a call answers, with the arguments of its kind."""
        return self.function.answer(self.read(arguments))

    def read(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values that arguments of its kind stand for."""
        return arguments if self.kind == "tool" else self.function.shape.read(arguments)

    def waits(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call gets as far as to wait."""
        return self.function.waits(self.read(arguments))

    @property
    def holds_main(self) -> bool:
        """Whether its calls keep the main thread."""
        return self.options.run == "main" and not self.function.is_coroutine


@dataclass(frozen=True)
class Skill:
    """A skill, of a cell or of a docstring."""

    word: str
    number: int
    variable: str | None = None
    """The variable of the object whose docstring it is."""
    kind: Kind = "resource"

    @property
    def name(self) -> str:
        """Its name in its notebook."""
        return f"{self.word}/SKILL.md"

    @property
    def template(self) -> str:
        """Its URI."""
        return f"skill://{self.name}"

    @property
    def text(self) -> str:
        """Its Markdown."""
        return f"Use it for {self.number}.\n\nThen go on."

    @property
    def document(self) -> str:
        """What a client reads."""
        matter = f'name: {self.word}\ndescription: "Use it for {self.number}."'
        return f"---\n{matter}\n---\n\n{self.text}\n"

    @property
    def source(self) -> str:
        """The cell that declares it."""
        if self.variable is None:
            return f"%%mcp_skill {self.word}\n{self.text}"
        return (
            "from mcp_notebook import mcp_skill\n"
            f"@mcp_skill\nclass {self.variable}:\n    {self.text!r}\n"
        )

    def listed(self, _name: str, uri: str) -> "Listed":
        """Return it as clients see it, under a URI."""
        return Listed(uri, f"Use it for {self.number}.", self.word)


Declared: TypeAlias = Tool | Skill

# -- a notebook ------------------------------------------------------------------------------------


class Notebook:
    """One kernel: its variables, and what it declares, in the order of the definition."""

    def __init__(self) -> None:
        self.variables: dict[str, Function | Skill | None] = {}
        """Functions, and objects with a skill, by name; None: something else."""
        self.declared: dict[str, Declared] = {}
        """Tools, prompts, resources and skills by name."""
        self.loaded = False
        self._kept: list[tuple[object, list[Declared]]] = []
        """What was made from decorated objects when the extension was unloaded."""

    def of_kind(self, kind: Kind) -> dict[str, Declared]:
        """Return what is declared of a kind, by name."""
        return {name: one for name, one in self.declared.items() if one.kind == kind}

    @property
    def functions(self) -> list[Function]:
        """The functions in variables."""
        return [each for each in self.variables.values() if isinstance(each, Function)]

    @property
    def callable(self) -> list[Tool]:
        """What a call runs: not the skills."""
        return [each for each in self.declared.values() if isinstance(each, Tool)]

    def define(self, function: Function, offered: Options | None = None) -> None:
        """A cell defines a function: as a tool, say, or (None) plainly."""
        self.variables[function.name] = function
        if offered is not None:
            self.offer(function, offered)
        self.follow()

    def offer(self, function: Function, options: Options) -> None:
        """Make a function a tool, say; what has its name gives its place to it."""
        tool = Tool(function, options)
        self.declared[tool.name] = tool

    def declare_skill(self, skill: Skill) -> None:
        """A cell declares a skill; one of its name gives its place to it."""
        if skill.variable is not None:
            self.variables[skill.variable] = skill
        self.declared[skill.name] = skill
        self.follow()

    def rename(self, name: str, new: str) -> None:
        """``registry.update(name, name=new)``: it keeps its place."""
        before, self.declared = self.declared, {}
        for each, one in before.items():
            if each == name and isinstance(one, Tool):
                self.offer(one.function, replace(one.options, name=new))
            else:
                self.declared[each] = one

    def follow(self) -> None:
        """Each tool follows its variable, and so does the skill of a docstring."""
        before, self.declared = self.declared, {}
        for one in before.values():
            if isinstance(one, Skill):
                value = self.variables.get(one.variable) if one.variable else one
                if isinstance(value, Skill):
                    self.declared[value.name] = value
                continue
            function = self.variables.get(one.function.name)
            if isinstance(function, Function):
                same = function is one.function
                # A decorated redefinition says all options anew.
                options = one.options if same else function.mark or one.options
                if options.uri is None or options.uri.fits(function.shape):
                    self.offer(function, options)

    def load(self) -> None:
        """``%load_ext``: what is decorated is declared, as it was at the last unload."""
        self.loaded = True
        decorated = [f for f in self.functions if f.mark is not None]
        for value in (*decorated, *(v for v in self.variables.values() if isinstance(v, Skill))):
            kept = next((kept for other, kept in self._kept if other is value), None)
            if kept is not None:
                self.declared |= {one.name: one for one in kept}
            elif isinstance(value, Skill):
                self.declared[value.name] = value
            else:
                assert value.mark is not None
                self.offer(value, value.mark)
        self.follow()

    def unload(self) -> None:
        """``%unload_ext``."""
        self.loaded = False
        self._kept = [
            (value, [one for one in self.declared.values() if _is_made_from(one, value)])
            for value in self.variables.values()
        ]
        self.declared = {}

    def restart(self) -> None:
        """A new process, with nothing in it."""
        self.unload()
        self.variables, self._kept = {}, []


def _is_made_from(one: Declared, value: object) -> bool:
    return one is value if isinstance(one, Skill) else one.function is value


# -- a bridge --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """What a client is told of a tool, prompt, resource or template."""

    name: str
    """Of a resource: the URI."""
    description: str
    schema: Any = field(hash=False)
    """Of a prompt: whether its arguments are required, by name; of a resource: its name."""


class Joined:
    """What one bridge offers: what all notebooks declare, in the order in which they came."""

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self._labels: dict[Notebook, str] = {}
        self.allowed = names
        """The names that a client may use; None: all."""

    def come(self, notebook: Notebook, label: str) -> None:
        """A notebook is there; its label gets a number if another has it."""
        taken = self._labels.values()
        self._labels[notebook] = f"{label}-2" if label in taken else label

    def go(self, notebook: Notebook) -> None:
        """A notebook is gone."""
        self._labels.pop(notebook, None)

    def _list(self, kind: Kind) -> Iterator[tuple[Notebook, str, Declared]]:
        """Yield what the client may use of a kind."""
        for notebook, label in self._labels.items():
            for one in notebook.of_kind(kind).values():
                if self.allowed is None or one.name in self.allowed:
                    yield notebook, label, one

    def names(self, kind: Kind = "tool") -> dict[str, tuple[Notebook, Declared]]:
        """All tools, say, by the name that they are listed under, in order; resources by URI."""
        if kind == "resource":
            return dict(self._uris())
        offers = Counter(name for notebook in self._labels for name in notebook.of_kind(kind))
        return {
            one.name if offers[one.name] == 1 else f"{label}_{one.name}": (notebook, one)
            for notebook, label, one in self._list(kind)
        }

    def _uris(self) -> Iterator[tuple[str, tuple[Notebook, Declared]]]:
        offers = Counter(
            _find_pattern(one.template)
            for notebook in self._labels
            for one in notebook.of_kind("resource").values()
        )
        for notebook, label, one in self._list("resource"):
            is_shared = offers[_find_pattern(one.template)] > 1
            uri = make_long(label, one.template) if is_shared else one.template
            yield uri, (notebook, one)

    def full_names(self, kind: Kind = "tool") -> dict[str, tuple[Notebook, Declared]]:
        """All of a kind by the names, or URIs, that always work."""
        found = {}
        for notebook, label, one in self._list(kind):
            names = [f"{label}{separator}{one.name}" for separator in "_."]
            if kind == "resource":
                names = [make_long(label, one.template)]
            found |= dict.fromkeys(names, (notebook, one))
        return found

    @property
    def listed(self) -> dict[str, tuple[Listed, ...]]:
        """What clients see, by the list."""
        every = {
            kind: [one.listed(name, name) for name, (_, one) in self.names(kind).items()]
            for kind in KINDS
        }
        resources = every["resource"]
        return {
            "tools": tuple(every["tool"]),
            "prompts": tuple(every["prompt"]),
            "resources": tuple(each for each in resources if "{" not in each.name),
            "templates": tuple(each for each in resources if "{" in each.name),
            "skills": tuple(each for each in resources if each.name.startswith("skill:")),
        }

    def find(self, name: str, kind: Kind = "tool") -> tuple[Notebook, Declared] | Outcome:
        """Return the tool, say, that a name or URI means, or what a call of it answers."""
        found = self.names(kind).get(name) or self.full_names(kind).get(name)
        if found is not None:
            return found
        if kind == "resource":
            patterns = [one.template for _, _, one in self._list(kind)]
            if name in patterns:
                return Outcome("Several open notebooks have a resource", "error")
            return Outcome("No ", "error")
        if any(one.name == name for _, _, one in self._list(kind)):
            return Outcome(f"Several open notebooks have a {kind} {name!r}", "error")
        for other in KINDS:
            own = [one.name for _, _, one in self._list(other)]
            long = [
                f"{label}{separator}{one.name}"
                for _, label, one in self._list(other)
                for separator in "_."
            ]
            if other != kind and (own.count(name) == 1 or name in long):
                return Outcome(f"{name!r} is a {other}, not a {kind}", "error")
        return Outcome(f"Unknown {kind}: {name!r}", "error")


def make_long(label: str, uri: str) -> str:
    """Return a URI with its notebook's name in front."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{label}/{rest}"


def _find_pattern(uri: str) -> str:
    """Return a URI without the names of its variables."""
    return re.sub(r"\{(\??)[^}]*\}", r"{\1}", uri)


def marked(function: Function, options: Options) -> Function:
    """Return a function as a decorator leaves it."""
    return replace(function, mark=options)
