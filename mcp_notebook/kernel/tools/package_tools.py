"""What installed packages offer, named by entry points in the group ``mcp_notebook.tools``.

They are tools, prompts, resources and skills. Runs in the user's kernel, on the thread that
declares them. Nothing is imported before the author of a notebook names a package:
``%mcp_tool --package acme``.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.attribute_tools import (
    check_prefix,
    find_decorated,
    find_marked_methods,
    find_owner,
    read_class_mark,
)
from mcp_notebook.kernel.tools.declared_tool import (
    DeclaredTool,
    make_tool,
    read_mark,
    read_skill_mark,
)
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.skills import SKILL_FILE
from mcp_notebook.text.wording import suggest

GROUP = "mcp_notebook.tools"
"""The group of entry points; the name of each is what `--package` takes."""


class PackageOrigin(Struct, frozen=True, kw_only=True, eq=False):
    """The package that tools come from; they do not follow a variable of the notebook."""

    word: str
    """The name of its entry point."""
    package: str
    """The name under which it is installed: ``acme-tools``."""
    value: Any
    """What its entry point names."""

    def is_current(self, _namespace: Mapping[str, Any]) -> bool:
        """Return True: only a restart loads another version."""
        return True

    def with_options(self, _options: ToolOptions) -> "PackageOrigin":
        """Return the same origin."""
        return self

    def make_tools(self, _namespace: Mapping[str, Any]) -> list[DeclaredTool]:
        """Return no tools; never called, because the origin is always current."""
        return []


class _Candidate(Struct, frozen=True):
    """A function of a package that can be a tool, a prompt or a resource; or a skill."""

    name: str
    function: Callable[..., Any]
    options: ToolOptions
    skill: DeclaredTool | None = None
    """The skill that an object's docstring is, in place of a tool."""


def list_packages() -> list[str]:
    """Return the names that `--package` takes, sorted."""
    return sorted({entry_point.name for entry_point in entry_points(group=GROUP)})


def find_package(tool: DeclaredTool) -> str | None:
    """Return the package that a tool comes from, as it is installed; None for the notebook's."""
    return tool.origin.package if isinstance(tool.origin, PackageOrigin) else None


def make_package_tools(
    name: str,
    only: Sequence[str] = (),
    *,
    prefix: str = "",
    schemas: SchemaCache | None = None,
) -> list[DeclaredTool]:
    """Import a package and make its tools.

    Args:
        name: The name of its entry point.
        only: The names of the tools to make; if empty, all.
        prefix: What the names of the tools begin with.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: There is no such package, it cannot be imported, it has no such tool, or
            one of its functions cannot be a tool.
    """
    check_prefix(prefix)
    importlib.invalidate_caches()  # it may have been installed by this notebook
    entry_point = _find_entry_point(name)
    value = _load(entry_point)
    origin = PackageOrigin(word=name, package=_find_package_name(entry_point), value=value)
    candidates = {each.name: each for each in _list_functions(value, entry_point)}
    if not candidates:
        raise DefinitionError(
            f"The package `{name}` offers no tools: {entry_point.value} has no function marked "
            "with `@mcp_tool`, `@mcp_prompt` or `@mcp_resource`, and no `@mcp_skill`."
        )
    names = [word if word in candidates else f"{word}/{SKILL_FILE}" for word in only]
    for word, key in zip(only, names, strict=True):
        if key not in candidates:
            meant = suggest(word, candidates)
            hint = f"Did you mean `{meant}`?" if meant else f"It has {', '.join(candidates)}."
            raise DefinitionError(f"The package `{name}` has no tool `{word}`. {hint}")
    return [
        structs.replace(_make(candidates[word], prefix, schemas), origin=origin)
        for word in names or candidates
    ]


def check_collisions(tools: Iterable[DeclaredTool], existing: Iterable[DeclaredTool]) -> None:
    """Refuse tools of a package whose names other tools of the notebook have.

    Args:
        tools: Of one package.
        existing: The notebook's tools.

    Raises:
        DefinitionError: Names the tool, and what has its name.
    """
    others = {tool.name: tool for tool in existing}
    for tool in tools:
        other = others.get(tool.name)
        if other is None or find_package(other) == find_package(tool):
            continue
        package = find_package(other)
        owner = f"the package `{package}`" if package else "this notebook"
        raise DefinitionError(
            f"`{find_package(tool)}` has a tool `{tool.name}`, and so has {owner}: add `--prefix "
            "NAME_` to the line, or write the names of the tools that you want after it."
        )


def _make(candidate: _Candidate, prefix: str, schemas: SchemaCache | None) -> DeclaredTool:
    if candidate.skill is not None:
        return candidate.skill
    options = replace(candidate.options, name=f"{prefix}{candidate.name}")
    return make_tool(candidate.function, options, schemas=schemas)


# -- the entry point -------------------------------------------------------------------------------


def _find_entry_point(name: str) -> EntryPoint:
    found = list(entry_points(group=GROUP, name=name))
    if len(found) == 1:
        return found[0]
    if found:
        packages = " and ".join(sorted(f"`{_find_package_name(each)}`" for each in found))
        raise DefinitionError(f"{packages} both offer tools as `{name}`: uninstall one of them.")
    names = list_packages()
    meant = suggest(name, names)
    if meant:
        raise DefinitionError(
            f"No installed package offers tools as `{name}`. Did you mean `{meant}`?"
        )
    listed = f"these do: {', '.join(names)}" if names else "no other does either"
    raise DefinitionError(
        f"No installed package offers tools as `{name}`; {listed}. Install it with `%pip install`, "
        f"or `import` its module if it has no entry point in the group {GROUP!r}."
    )


def _find_package_name(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist is not None else entry_point.module


def _load(entry_point: EntryPoint) -> Any:
    try:
        return entry_point.load()
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"The package `{entry_point.name}` ({_find_package_name(entry_point)}) cannot be "
            f"loaded: {describe_error(error)}. `import {entry_point.module}` shows where."
        ) from error


def _list_functions(value: Any, entry_point: EntryPoint) -> Iterator[_Candidate]:
    """Yield what can be offered: what is marked in a module, or what a list names."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _list_functions(item, entry_point)
        return
    if isinstance(value, ModuleType):
        for name in find_decorated(vars(value)):
            yield from _list_marked(vars(value)[name], entry_point)
        for item in (value, *vars(value).values()):
            yield from _list_skills(item)
        return
    skills = list(_list_skills(value))
    if not skills or read_mark(value) is not None or read_class_mark(value) is not None:
        yield from _list_marked(value, entry_point)
    yield from skills


def _list_skills(value: Any) -> Iterator[_Candidate]:
    skill = read_skill_mark(value)
    if skill is not None:
        yield _Candidate(skill.name, skill.function, ToolOptions(), skill)


def _list_marked(value: Any, entry_point: EntryPoint) -> Iterator[_Candidate]:
    owner, prefix = find_owner(value, entry_point.name)
    if owner is not None:
        for name, options in find_marked_methods(type(owner)).items():
            yield _Candidate(f"{prefix}{options.name or name}", getattr(owner, name), options)
    elif callable(value) and not isinstance(value, type):
        options = read_mark(value) or ToolOptions()
        yield _Candidate(options.name or str(getattr(value, "__name__", "")), value, options)
    else:
        raise DefinitionError(
            f"The package `{entry_point.name}` offers an object of type {type(value).__name__} "
            f"({entry_point.value}). Its author has to name a function, a module with functions "
            "marked `@mcp_tool`, a class under `@mcp_tools`, or a list of these."
        )
