"""Skills: Markdown that tells an assistant how to work with the notebook.

Runs in the user's kernel, on the thread that declares the skill; pure. A skill is a folder of texts
in the form of the Agent Skills specification (agentskills.io): ``SKILL.md`` begins with YAML front
matter that has a name and a description, and refers to the other files by relative paths. Each file
is declared as a resource with a fixed text, under its path as its name, which is not a tool's: a
skill and a tool may have the same name. The bridge serves the files by MCP's skills extension
(SEP-2640).

*Front matter.* Hosts compare a skill's entry with the front matter of its text, so both sides must
read the same values. It is read by the rules of YAML 1.2, as hosts do: dates and ``yes`` are text.
"""

import inspect
import mimetypes
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct, structs
from pydantic_core import from_json, to_json

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_own_resource, read_skill_mark
from mcp_notebook.kernel.tools.options import ResourceOptions, ToolOptions

SKILL_FILE = "SKILL.md"
"""The file of a skill that has the front matter."""
MAX_DESCRIPTION = 1024
"""Maximum characters of a skill's description, by the specification."""
MAX_FILE = 2**18
"""Maximum bytes of one file: the texts travel with the list of tools."""
_NAME = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_SEGMENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_SEGMENTS = 5
_ABOUT_SKILL = "Begin the cell with `%%mcp_skill NAME`, as in `%%mcp_skill weekly-report`."


class SkillFile(Struct, frozen=True):
    """One file of a skill."""

    skill: str
    """The skill's name."""
    path: str
    """The path below the skill's folder, with ``/``."""
    text: str
    front_matter: Mapping[str, Any] | None = None
    """Of ``SKILL.md``: the values of its front matter, with name and description."""

    @property
    def full_path(self) -> str:
        """The path that begins with the skill's name."""
        return f"{self.skill}/{self.path}"

    @property
    def mime_type(self) -> str:
        """The MIME type, by the path."""
        if self.path.endswith((".md", ".markdown")):  # Python 3.11 does not know it
            return "text/markdown"
        return mimetypes.guess_type(self.path)[0] or "text/plain"


class SkillOrigin(Struct, frozen=True, eq=False):
    """The object whose docstring is a skill, which follows the object's variable."""

    word: str
    """The variable."""
    value: Any

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether the variable still holds the object, or a decorator's wrapper of it."""
        value = namespace.get(self.word)
        return value is self.value or (
            value is not None and read_skill_mark(value) is read_skill_mark(self.value)
        )

    def with_options(self, _options: ToolOptions) -> "SkillOrigin":
        """Return itself: the options of tools are not those of skills."""
        return self

    def make_tools(self, namespace: Mapping[str, Any]) -> tuple[DeclaredTool, ...]:
        """Return the skill of what the variable holds now; none if it was deleted.

        Raises:
            DefinitionError: It holds something without a skill.
        """
        if self.word not in namespace:
            return ()
        skill = read_skill_mark(namespace[self.word])
        if skill is None:
            raise DefinitionError(f"`{self.word}` now holds something without `@mcp_skill`.")
        return (skill,)


def read_skill(word: str, text: str, description: str | None = None) -> SkillFile:
    """Return the skill, or the further file of a skill, that a cell declares.

    Args:
        word: From the magic's line: the skill's name, or ``NAME/PATH`` for a further file. Empty
            if the name is in the front matter.
        text: The cell below the line.
        description: The description, if it is not in the front matter. None and no front matter:
            the text's first paragraph.

    Raises:
        DefinitionError: The name or the path is not allowed, a description is missing, or the front
            matter is not valid.
    """
    name, _, path = word.partition("/")
    text = text.encode(errors="replace").decode().strip("\n") + "\n"
    if not text.strip():
        raise DefinitionError("The skill is empty: write its Markdown below the line.")
    size = len(text.encode())
    if size > MAX_FILE:
        raise DefinitionError(
            f"The skill's text has {size:,} bytes, more than {MAX_FILE:,}. Move parts of it to "
            "files of their own: `%%mcp_skill NAME/references/PART.md`."
        )
    if path and path != SKILL_FILE:
        check_skill_name(name)
        _check_path(path)
        if description is not None:
            raise DefinitionError(f"`--description` belongs to the skill itself, not to {path}.")
        return SkillFile(name, path, text)
    matter = read_front_matter(text)
    if matter is None:
        check_skill_name(name)
        description = description or _find_paragraph(text)
        if not description:
            raise DefinitionError(
                f"The skill {name!r} needs a description, by which assistants choose it: begin "
                "the Markdown with a sentence, or add `--description`."
            )
        matter = {"name": name, "description": description}
        text = f"---\nname: {name}\ndescription: {_quote(description)}\n---\n\n{text}"
    elif description is not None:
        raise DefinitionError(
            "`--description` and the front matter both describe the skill: remove one of them."
        )
    _check_front_matter(matter, name)
    return SkillFile(matter["name"], SKILL_FILE, text, matter)


def read_docstring_skill(value: Any, description: str | None = None) -> SkillFile:
    """Return the skill that is the docstring of a function, a class or a module.

    Its name is in the docstring's front matter, or the object's name with hyphens.

    Args:
        value: The object.
        description: As for `read_skill`.

    Raises:
        DefinitionError: It has no docstring, or as `read_skill`.
    """
    doc, name = getattr(value, "__doc__", None), getattr(value, "__name__", None)
    if not isinstance(doc, str) or not doc.strip() or not isinstance(name, str):
        raise DefinitionError(
            f"`@mcp_skill` needs a docstring, which becomes the skill's Markdown: write one below "
            f"`{name}`."
            if isinstance(name, str)
            else "`@mcp_skill` is for functions, classes and modules with a docstring."
        )
    text = inspect.cleandoc(doc)
    if read_front_matter(text + "\n") is not None:
        name = ""  # that of the front matter
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.rpartition(".")[2])
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return read_skill(words, text, description)


def describe_skill(skill: DeclaredTool) -> str:
    """Return what a cell says of a skill that it declares."""
    return f"Skill `{skill.name.partition('/')[0]}`: {skill.info.description}"


def make_skill_tool(
    file: SkillFile, tags: tuple[str, ...] = (), origin: SkillOrigin | None = None
) -> DeclaredTool:
    """Return the resource that serves a skill's file.

    Args:
        file: The file.
        tags: Words to group it by, as those of tools.
        origin: The object whose docstring it is, if it is in a variable.

    Raises:
        DefinitionError: A tag is not valid.
    """

    def read() -> str:
        return file.text

    name = file.full_path
    matter = None if file.front_matter is None else dict(file.front_matter)
    described = "" if matter is None else matter["description"]
    options = ResourceOptions(
        name=name,
        uri=f"skill://{name}",
        mime_type=file.mime_type,
        description=described,
        tags=tags,
    )
    tool = make_own_resource(read, options)
    info = structs.replace(tool.info, text=file.text, front_matter=matter)
    return structs.replace(tool, info=info, origin=origin)


def check_skill_name(name: str) -> None:
    """Check a skill's name.

    Raises:
        DefinitionError: The specification does not allow it.
    """
    if _NAME.fullmatch(name):
        return
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64].rstrip("-")
    hint = f" as in {plain!r}." if plain else " " + _ABOUT_SKILL
    raise DefinitionError(
        f"{name!r} cannot be a skill's name: use 1 to 64 lowercase letters, digits and single "
        f"hyphens,{hint}"
        if name
        else f"The skill needs a name. {_ABOUT_SKILL}"
    )


def _check_path(path: str) -> None:
    segments = path.split("/")
    if (
        len(segments) > _MAX_SEGMENTS
        or not all(map(_SEGMENT.fullmatch, segments))
        or segments[-1] == SKILL_FILE
    ):
        raise DefinitionError(
            f"{path!r} cannot be a file of a skill: use a relative path of letters, digits, `_`, "
            "`-` and `.`, as in `%%mcp_skill NAME/references/limits.md`."
        )


def _check_front_matter(matter: Mapping[str, Any], name: str) -> None:
    own_name, description = matter.get("name"), matter.get("description")
    if not isinstance(own_name, str):
        raise DefinitionError("The skill's front matter needs a `name`.")
    check_skill_name(own_name)
    if name and own_name != name:
        raise DefinitionError(
            f"The line names the skill {name!r}, and its front matter {own_name!r}: use one name."
        )
    if not isinstance(description, str) or not description.strip():
        raise DefinitionError(
            f"The skill {own_name!r} needs a `description` in its front matter, by which "
            "assistants choose it."
        )
    if len(description) > MAX_DESCRIPTION:
        raise DefinitionError(
            f"The description of the skill {own_name!r} has {len(description):,} characters, more "
            f"than {MAX_DESCRIPTION:,}: say in a sentence or two what it is for, and when to use "
            "it."
        )


def _find_paragraph(text: str) -> str:
    """Return the first paragraph of a Markdown text that is not a heading, on one line."""
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [line.strip() for line in block.splitlines() if not line.startswith("#")]
        paragraph = " ".join(filter(None, lines))
        if paragraph:
            return paragraph[:MAX_DESCRIPTION].rstrip()
    return ""


def _quote(text: str) -> str:
    """Return a string as YAML and JSON write it."""
    return to_json(text).decode()


# -- front matter ----------------------------------------------------------------------------------


def read_front_matter(text: str) -> dict[str, Any] | None:
    """Return the values of a text's YAML front matter; None if it has none.

    Raises:
        DefinitionError: It is not valid.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    yaml, loader = _load_yaml()
    try:
        value = yaml.load(match[1], loader)
        is_json = from_json(to_json(value)) == value
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise DefinitionError(
            f"The front matter is not valid YAML{where}: {problem}. Put text with a colon between "
            "quotes."
        ) from None
    except (ValueError, TypeError, RecursionError):
        is_json = False
    if not is_json:
        raise DefinitionError(
            "The front matter can only have what JSON can express: text, numbers, lists and "
            "mappings with names."
        )
    if not isinstance(value, dict):
        raise DefinitionError(
            "The front matter must be lines like `name: weekly-report` and `description: ...`."
        )
    return value


@cache
def _load_yaml() -> tuple[Any, Any]:
    """Return PyYAML and a loader with the scalars of YAML 1.2, without aliases."""
    import yaml  # noqa: PLC0415 - 15 ms that only notebooks with skills need

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # a few of them can stand for gigabytes
                raise yaml.MarkedYAMLError(
                    problem="aliases are not supported", problem_mark=self.peek_event().start_mark
                )
            return super().compose_node(parent, index)

    scalars = {
        "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        "int": (r"[-+]?[0-9]+", list("-+0123456789")),
        "float": (
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
            list("-+.0123456789"),
        ),
    }
    for kind, (pattern, first) in scalars.items():
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z"), first
        )
    for kind, number in (("int", int), ("float", float)):
        Loader.add_constructor(
            f"tag:yaml.org,2002:{kind}",
            lambda loader, node, number=number: number(loader.construct_scalar(node)),
        )
    return yaml, Loader
