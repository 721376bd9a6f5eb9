"""``%load_ext mcp_notebook`` and ``%unload_ext``: builds the kernel side, and removes it again.

Runs on the kernel's main thread. The shell holds the notebook's one `Extension`, not a module:
``%reload_ext`` re-imports only the package's ``__init__``, so that the state of any other module
would survive it.
"""

import atexit
import inspect
import logging
import os
import time
import weakref
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from typing import Any

from IPython.core.error import UsageError
from IPython.core.extensions import ExtensionManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from mcp_notebook.discovery.departures import Departure, list_departures
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import IgnoredFiles, Record, make_socket_name, read_records
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.calls.capture import current_capture
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.calls.kernel_activity import KernelActivity
from mcp_notebook.kernel.calls.shell_commands import empty_input
from mcp_notebook.kernel.fork.fork_runner import ForkRunner
from mcp_notebook.kernel.link.endpoint import Endpoint
from mcp_notebook.kernel.link.own_log import OwnLog, log_failure
from mcp_notebook.kernel.link.published_record import PublishedRecord
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.link.shutdown_hook import ShutdownHook
from mcp_notebook.kernel.notebook.cards.tool_view import build_card
from mcp_notebook.kernel.notebook.cell_tools import CellTools, describe_undeclared
from mcp_notebook.kernel.notebook.cells import CallNames
from mcp_notebook.kernel.notebook.client_cells import ClientCells
from mcp_notebook.kernel.notebook.consent_prompts import ConsentPrompts
from mcp_notebook.kernel.notebook.declarations import declare_decorated, list_decorated
from mcp_notebook.kernel.notebook.inspection import Inspection, make_variable_uri
from mcp_notebook.kernel.notebook.loaded_extension import (
    EXTENSION,
    find_cell,
    get_parent,
    read_metadata,
)
from mcp_notebook.kernel.notebook.magics.completion import MagicCompleter
from mcp_notebook.kernel.notebook.magics.magics import McpMagics, suggest_correction
from mcp_notebook.kernel.notebook.magics.mcp_verbs import Notebook
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.notebook.panel.side_panel_state import (
    PanelSource,
    SidePanel,
    find_server_address,
)
from mcp_notebook.kernel.notebook.proposing import Proposing
from mcp_notebook.kernel.notebook.public_address import build_address_card, find_public_address
from mcp_notebook.kernel.notebook.resource_changes import (
    ResourceChanges,
    list_names,
    list_words,
)
from mcp_notebook.kernel.notebook.tool_lock import ToolLock
from mcp_notebook.kernel.notebook.tool_problems import describe_orphans
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.completion import complete_argument
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.metadata import add_result_size
from mcp_notebook.kernel.tools.own_views import OwnViews
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import KERNEL_ID, Settings
from mcp_notebook.text.missing_tools import SWITCH_ON, SWITCHED_OFF, DroppedTool
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

_REPLACED = "_mcp_notebook_replaced"
"""Attribute of the shell that holds the extension that ``%reload_ext`` has just unloaded."""
_DECORATED = "_mcp_notebook_decorated"
"""Attribute of the shell that holds the functions and classes decorated before ``%unload_ext``."""
_FORK_HOOK = "_mcp_notebook_fork_hook"


class Extension:
    """All parts that let one notebook offer tools, from `load` to `unload`.

    Args:
        shell: The notebook's IPython shell.
        settings: The settings.
        previous: The extension that this one replaces (``%reload_ext``); its tools and converters
            are kept.
    """

    def __init__(
        self, shell: InteractiveShell, settings: Settings, previous: "Extension | None" = None
    ) -> None:
        self.shell = shell
        self.request = get_parent(shell)
        self.settings = settings
        self._previous = previous
        self._log = OwnLog(settings.home)
        self.folders: SharedFolders = SharedFolders.from_settings(settings)
        views = OwnViews(self.folders.folder, self.folders.read_bytes)
        schemas = SchemaCache(settings.schemas_folder)
        self.registry = ToolRegistry(self._tools_changed, schemas, views)
        self.cell_tools: CellTools = CellTools(self.registry, getattr(previous, "cell_tools", None))
        headless_id = os.environ.get(KERNEL_ID)
        self._is_headless = bool(headless_id)
        self._id = headless_id or make_id()
        self.resources = ResourceStore(self._id, settings.max_resource_bytes)
        self._resource_reader = ResourceReader(
            self.resources, self.registry.make_page, self._complete
        )
        self.invoker: Invoker = Invoker(
            shell,
            shell.kernel.io_loop.asyncio_loop,
            self.registry,
            self._make_converter(),
            settings,
            log=previous.invoker.log if previous else CallLog(),
            fork_runner=ForkRunner,
        )
        file = previous and previous.notebook_file
        self.notebook_file: NotebookFile = file or NotebookFile(shell.user_ns, self._read_traces)
        self._lock = ToolLock(self.notebook_file)
        self._resource_changes = ResourceChanges(shell.user_ns)
        self._changed_at: dict[str, float] = {}
        """When resources may have changed since they were declared, by URI."""
        self._inspection: Inspection = Inspection(shell.user_ns, shell.user_ns_hidden)
        self.registry.built_in = {self._inspection.tool.name: self._inspection.tool}
        self.invoker.on_ended = self._call_ended
        self._pid = os.getpid()
        self._record = PublishedRecord(
            self._id, settings, self._describe_notebook, is_headless=self._is_headless
        )
        self._activity = KernelActivity(shell.kernel, self.invoker)
        self._prompts = ConsentPrompts(shell)
        self.tasks = _make_task_store(self._id, settings, self.resources)
        self._endpoint = Endpoint(
            self.invoker,
            self._list_tools,
            self._resource_reader,
            tasks=self.tasks,
            prompts=None if self._is_headless else self._prompts,  # no person sees its cells
            path=settings.home / "run" / make_socket_name(self._id),
        )
        self._endpoint.on_moved = self._notebook_moved
        self.proposing = self._make_proposing()
        self.panel = self._make_panel()
        if settings.propose or (previous is not None and previous.proposing.is_on):
            self.proposing.switch(on=True)
        self._told_orphans: set[str] = set()
        """Tools without a cell that the author knows of."""
        notebook = self._describe_to_magics()
        self._magics = McpMagics(shell, self.cell_tools, notebook)
        self._completer = MagicCompleter(shell, notebook)
        self._call_names = CallNames(shell)
        self._shutdown_hook = ShutdownHook(shell.kernel, self._before_shutdown)
        self._events = {
            "pre_run_cell": log_failure(self._before_cell),
            "post_run_cell": log_failure(self._after_cell),
        }
        self._builtins: ExitStack = ExitStack()
        """While it is open, calls find the builtins of cells."""

    def load(self) -> None:
        """Listen for bridges, publish the record, add the magics.

        Raises:
            LinkError: The endpoint cannot listen; nothing is left behind.
        """
        self._log.open()
        try:
            address = self._endpoint.start()
            self._record.publish(address, self.shell.kernel)
            self.shell.register_magics(self._magics)
            self._completer.install()
            self._call_names.install()
            if self._is_headless:  # the Python of its own may lack our launcher
                empty_input()
            for event, callback in self._events.items():
                self.shell.events.register(event, callback)
            self._shutdown_hook.install()
            self._activity.install()
            # IPython removes the builtin `get_ipython` at the end of each cell. Libraries that are
            # imported in a call would conclude that there is no notebook, and show nothing.
            self._builtins.enter_context(self.shell.builtin_trap)
            atexit.register(self._at_exit)
            setattr(self.shell, EXTENSION, self)
            _watch_forks(self.shell)
            self._adopt_tools()
        except BaseException:
            self.unload()
            raise

    def unload(self) -> None:
        """Undo `load` in reverse order, within a bounded time; idempotent."""
        if getattr(self.shell, EXTENSION, None) is self:
            delattr(self.shell, EXTENSION)
        atexit.unregister(self._at_exit)
        self._builtins.close()
        self._shutdown_hook.remove()
        for event, callback in self._events.items():
            if callback in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, callback)
        self._completer.remove()
        self._call_names.remove()
        for kind, magics in self._magics.magics.items():
            for name in magics:
                self.shell.magics_manager.magics[kind].pop(name, None)
        self.shell.magics_manager.registry.pop(type(self._magics).__name__, None)
        if self._magics in self.shell.configurables:  # `Magics` adds itself there
            self.shell.configurables.remove(self._magics)
        self._withdraw("The notebook unloaded mcp_notebook.", is_unload=True)
        self._log.close()

    def _withdraw(self, reason: str, *, is_unload: bool = False) -> None:
        self._record.forget(reason)
        # Say goodbye first: the bridge then answers the open calls with the reason.
        self._endpoint.stop(reason, is_unload=is_unload)
        self.invoker.close(reason)
        self._activity.remove()
        self._resource_reader.close()
        self.resources.clear()

    def _before_shutdown(self, restart: bool) -> None:  # noqa: FBT001 - as in Jupyter's protocol
        # On the control thread; in the order of `_withdraw`.
        reason = "The kernel was restarted." if restart else "The kernel was shut down."
        self._record.forget(reason)
        self._endpoint.stop(reason)
        self.invoker.close(reason)

    def _at_exit(self) -> None:
        if os.getpid() == self._pid:  # a forked child owns neither record nor socket
            self._withdraw("The notebook's kernel was shut down or restarted.")

    def _make_converter(self) -> Converter:
        formatter: Any = self.shell.display_formatter
        return Converter(
            formatter.format,
            self.settings,
            keep=self.resources.keep,
            code_name=self.shell.compile.format_code_name,
            folders=self.folders,
        )

    def _describe_to_magics(self) -> Notebook:
        return Notebook(
            registry=self.registry,
            invoker=self.invoker,
            settings=self.settings,
            folders=self.folders,
            prompts=self._prompts,
            panel=self.panel,
            read_progress=self._endpoint.read_progress,
            get_listed_names=lambda: self._endpoint.listed_names,
            insert_cell=self.shell.set_next_input,
            id=self._id,
            list_cells=self._list_cells,
            file=self.notebook_file,
            proposing=self.proposing,
        )

    def _list_cells(self) -> list[str]:
        """Return the source of the cells that have run, by their execution count; 0 is empty."""
        history = self.shell.history_manager
        return [] if history is None else list(history.input_hist_raw)

    def _make_proposing(self) -> Proposing:
        cells = ClientCells(self.notebook_file, self.registry, lambda: self._endpoint.listed_names)
        proposing = Proposing(
            self.shell, cells, self.invoker, self._inspection, is_headless=self._is_headless
        )
        proposing.on_switch = self._tools_changed
        proposing.queue.on_late = self._endpoint.note_change
        return proposing

    def _make_panel(self) -> SidePanel:
        source = PanelSource(
            registry=self.registry,
            lock=self._lock,
            invoker=self.invoker,
            settings=self.settings,
            kernel=self._id,
            get_name=lambda: self._describe_notebook()["name"],
            get_refusal=lambda: self._endpoint.last_refusal,
            get_listed_names=lambda: self._endpoint.listed_names,
            list_clients=lambda: self._endpoint.clients,
            server_address=find_server_address(os.environ),
            show=self._endpoint.show_side_panel,
        )
        prompts = None if self._is_headless else self._prompts
        panel = SidePanel(source, prompts, self.proposing)
        self._endpoint.on_clients = self._endpoint.note_change
        self._endpoint.view = panel
        self._prompts.on_change = self._endpoint.note_change
        return panel

    def _describe_notebook(self) -> dict[str, Any]:
        return self.notebook_file.describe(self._pid)

    def _notebook_moved(self, path: str) -> None:
        """Publish the new name at once, also while a cell runs; runs on the endpoint's thread."""
        if self.notebook_file.move(path):
            self._record.update()
            self._endpoint.note_change()

    def _read_traces(self) -> list[Departure | Record]:
        """Return records and departures of other kernels, also earlier ones of this notebook."""
        folder = self.settings.records_folder
        return [*read_records(folder, IgnoredFiles()), *list_departures(folder)]

    def _adopt_tools(self) -> None:
        """Take over the previous extension's tools, or declare what was decorated before."""
        previous, self._previous = self._previous, None
        if previous is not None:
            self.registry.take_over(previous.registry)
        else:
            warning = self.folders.describe_home()
            if warning:
                print_output(warning)
            address = find_public_address(os.environ)
            if address is not None and not self._is_headless:
                display(build_address_card(address), raw=True)
            self.cell_tools.begin_run(find_cell())  # of the cell with `%load_ext`
            earlier = vars(self.shell).pop(_DECORATED, ())
            declare_decorated(self.registry, self.shell, earlier)
            self._show_card(tool.name for tool in self.registry.tools)

    # -- called by the notebook and by the parts ---------------------------------------------------

    def abandon_in_child(self) -> None:
        """Release the kernel's sockets and its loop in a forked child."""
        self._endpoint.abandon_in_child()
        self.invoker.abandon_in_child()

    def _list_tools(self, inspects: bool) -> messages.Tools:  # noqa: FBT001 - as `Endpoint` calls it
        off = self.registry.switched_off
        infos = [
            add_result_size(tool.info, self.settings.max_result_chars)
            for tool in self.registry.tools
            if tool.name not in off
        ]
        modified = {
            uri: max(tool.declared_at, self._changed_at.get(uri, 0.0))
            for tool in self.registry.tools
            if (uri := tool.info.uri) is not None and "{" not in uri
        }
        infos += self.proposing.list_infos()
        if inspects or self.proposing.is_listed:
            infos.append(self._inspection.make_info(proposes=not inspects))
            names = self._inspection.list_names()
            self._resource_changes.watch(names)
            uris = map(make_variable_uri, names)
            modified |= {uri: self._changed_at[uri] for uri in uris if uri in self._changed_at}
        missing = {name: DroppedTool(SWITCHED_OFF, at, SWITCH_ON) for name, at in off.items()}
        return messages.Tools(
            tools=infos,
            missing=missing | self.registry.dropped,
            modified=modified,
        )

    def _complete(self, request: messages.Complete) -> tuple[list[str], int]:
        declared = self.registry.get(request.declaration)
        if declared is None:
            return [], 0
        source = declared.options.completions.get(request.argument)
        return complete_argument(request, declared.info, source, self.shell.user_ns)

    def _tools_changed(self) -> None:
        self._endpoint.announce_tools()
        self._endpoint.note_change()

    def _before_cell(self, info: object) -> None:
        if current_capture() is not None:
            return  # a call runs a cell, by `run_cell`
        self.request = get_parent(self.shell)
        if not self.invoker.runs_cell and self.shell.payload_manager is not None:
            self.shell.payload_manager.clear_payload()  # of threads that calls have started
        self.invoker.cell_started()
        self._prompts.show_unseen()  # this cell may be of a frontend without side panel
        self._endpoint.note_change()  # a call may wait for the cell
        self.cell_tools.note_deleted(read_metadata(self.request).get("deletedCells"))
        cell = getattr(info, "cell_id", None)
        self.cell_tools.begin_run(cell)
        self.proposing.before_cell(cell, str(getattr(info, "raw_cell", "")))
        if self.notebook_file.follow():  # the file was renamed
            self._record.update()

    def _after_cell(self, result: object) -> None:
        if current_capture() is not None:
            return
        self.invoker.cell_ended()
        run = self.cell_tools.end_run(result)
        before = {tool.name: tool.info for tool in self.registry.tools}
        notes = self.registry.follow(self.shell.user_ns)
        followed = [tool for tool in self.registry.tools if tool.info != before.get(tool.name)]
        self._show_card({*run.added, *(tool.name for tool in followed)})
        self._tell_orphans()
        if run.dropped:
            print_output(describe_undeclared(run.dropped))
        misspelt = suggest_correction(getattr(result, "error_in_exec", None))
        info = getattr(result, "info", None)
        told = filter(None, [misspelt, self.proposing.after_cell()])
        for sentence in (*run.notes, *notes, *told):
            print_note(sentence)
        self._endpoint.note_change()
        self._tell_resource_changes(list_words(str(getattr(info, "raw_cell", ""))))

    def _call_ended(self, tool: DeclaredTool) -> None:
        """Tell bridges which resources a call may have changed."""
        if not (tool.info.annotations or {}).get("readOnlyHint"):
            self._tell_resource_changes(list_names(tool.function, self.shell.user_ns))

    def _tell_resource_changes(self, words: Collection[str]) -> None:
        """Tell bridges which resources code with these identifiers may have changed."""
        resources = [
            tool
            for tool in self.registry.tools
            if tool.info.kind == "resource" and tool.info.text is None
        ]
        is_inspected = self._endpoint.is_inspected or self.proposing.is_on
        if resources or is_inspected:
            watched = self._inspection.list_names() if is_inspected else ()
            changes = self._resource_changes
            names, variables = changes.find_changed(resources, words, watched)
            if names or variables:
                uris = [tool.info.uri or "" for tool in resources if tool.name in names]
                modified = self._note_changed([*uris, *map(make_variable_uri, variables)])
                self._endpoint.announce_resource_changes(
                    messages.ResourcesChanged(
                        resources=names, variables=variables, modified=modified
                    )
                )
            if is_inspected and variables:
                self._endpoint.announce_tools()  # with the variables as they are now

    def tell_resource_changed(self, uri: str) -> None:
        """Tell bridges that the author reports a change of a resource."""
        modified = self._note_changed([uri])
        self._endpoint.announce_resource_changes(
            messages.ResourcesChanged(uris=[uri], modified=modified)
        )

    def _note_changed(self, uris: Iterable[str]) -> dict[str, float]:
        """Remember that resources and variables may just have changed, and return the times."""
        modified = dict.fromkeys(uris, time.time())
        known = {tool.info.uri for tool in self.registry.tools}
        known |= {*map(make_variable_uri, self._inspection.list_names())}
        self._changed_at |= modified
        self._changed_at = {uri: at for uri, at in self._changed_at.items() if uri in known}
        return modified

    def _tell_orphans(self) -> None:
        """Say which tools have lost their cells, once, unless a side panel says it."""
        orphans = [tool for tool in self.registry.orphans if tool.name not in self._told_orphans]
        self._told_orphans = {tool.name for tool in self.registry.orphans}
        if orphans and not self.panel.frontends:
            print_note(describe_orphans(orphans))

    def _show_card(self, names: Iterable[str]) -> None:
        """Show one card of these tools, if there are any, as a part of the cell's output."""
        wanted = set(names)
        # Not of skills: their magic has said all.
        tools = [
            tool for tool in self.registry.tools if tool.name in wanted and tool.info.text is None
        ]
        if tools:
            display(build_card(tools, self.registry.list_hosts, self._lock.describe), raw=True)


def _make_task_store(kernel_id: str, settings: Settings, resources: ResourceStore) -> TaskStore:
    most, reserve = settings.max_resource_bytes, resources.reserve
    return TaskStore(kernel_id, ttl=settings.task_ttl, max_bytes=most, reserve=reserve)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext mcp_notebook``: start to offer tools."""
    if getattr(shell, EXTENSION, None) is not None:
        return
    if getattr(shell, "kernel", None) is None:
        raise UsageError(
            "mcp_notebook needs a Jupyter kernel, but this is IPython in a terminal. Open a "
            "notebook (in JupyterLab or VS Code), or run `mcp-notebook serve FILE.ipynb`."
        )
    try:
        Extension(shell, Settings.from_environment(), getattr(shell, _REPLACED, None)).load()
    except McpNotebookError as error:
        raise UsageError(str(error)) from None
    vars(shell).pop(_REPLACED, None)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext mcp_notebook``: stop offering tools, and undo ``%load_ext``."""
    extension: Extension | None = getattr(shell, EXTENSION, None)
    if extension is not None:
        extension.unload()
        if _is_reload():
            setattr(shell, _REPLACED, extension)
        else:
            setattr(shell, _DECORATED, list_decorated(extension.registry, shell.user_ns))


def _is_reload() -> bool:
    """Return whether IPython is reloading the extension.

    For ``%reload_ext``, it calls the functions of ``%unload_ext`` and ``%load_ext``.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code is inspect.unwrap(ExtensionManager.reload_extension).__code__:
            return True
        frame = frame.f_back
    return False


def _watch_forks(shell: InteractiveShell) -> None:
    """Release the extension's sockets in each forked child; registered once per shell.

    A fork hook cannot be removed, so it holds the shell weakly and looks up the extension each
    time.
    """
    if getattr(shell, _FORK_HOOK, False) or not hasattr(os, "register_at_fork"):
        return
    setattr(shell, _FORK_HOOK, True)
    reference = weakref.ref(shell)

    def abandon_in_child() -> None:
        extension: Extension | None = getattr(reference(), EXTENSION, None)
        if extension is not None:
            extension.abandon_in_child()

    os.register_at_fork(after_in_child=abandon_in_child)
