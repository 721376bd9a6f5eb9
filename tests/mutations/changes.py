"""Small wrong changes of the core, each with the tests that should notice it.

A change is one mistake that somebody could make while editing: a condition turned around, a line
left out, a bound off by one. `before` occurs exactly once in the file (``test_changes.py`` checks
that); ``run.py`` makes the changes, one at a time, in a copy of the tree.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A wrong change of one file."""

    file: str
    """Below ``mcp_notebook/``."""
    before: str
    after: str
    tests: str
    """Below ``tests/``, separated by spaces: the files that should notice it."""


_CALLS = "kernel/calls/test_invoker.py kernel/calls/test_runners.py"
_QUEUE = "kernel/calls/test_call_queue.py kernel/calls/test_invoker.py"
_STOPPING = "kernel/calls/test_stopping.py kernel/calls/test_invoker.py"
_LOG = "kernel/calls/test_call_log.py kernel/calls/test_logged_call.py"
_STOPS = "kernel/link/test_call_stops.py"
_LINKS = "bridge/kernels/test_links.py bridge/kernels/test_link.py"
_ELICITATION = "bridge/server/test_elicitation.py bridge/server/test_parked_calls.py"
_CONNECTIONS = "bridge/transports/test_connections.py"
_SMUGGLING = "bridge/transports/test_connections_smuggling.py"
_PROBES = "bridge/transports/test_probes.py"
_SPANS = "kernel/calls/test_spans.py"
_TRACER = "bridge/telemetry/test_call_tracer.py"
_TRACES = "bridge/server/test_trace_headers.py"
_TOKENS = "bridge/access/test_named_tokens.py"
_FRAMES = "wire/test_frames.py wire/test_messages.py"

CHANGES = (
    # -- kernel/calls ------------------------------------------------------------------------------
    Change(
        "kernel/calls/call.py",
        "        self.since = monotonic()\n",
        "",
        "kernel/calls/test_call.py kernel/calls/test_invoker.py",
    ),
    Change(
        "kernel/calls/call.py",
        'other.run == call.run == "main"',
        'other.run == "main"',
        "kernel/calls/test_call.py kernel/calls/test_invoker.py",
    ),
    Change(
        "kernel/calls/call_queue.py",
        "has_room = len(self._calls) < self.max_calls",
        "has_room = len(self._calls) <= self.max_calls",
        _QUEUE,
    ),
    Change(
        "kernel/calls/call_queue.py",
        "elif call is None and not other.has_ended:",
        "elif not other.has_ended:",
        _QUEUE,
    ),
    Change(
        "kernel/calls/call_queue.py",
        "running >= most:",
        "running > most:",
        _QUEUE,
    ),
    Change(
        "kernel/calls/call_queue.py",
        "            call.is_stopping = False\n",
        "",
        _QUEUE,
    ),
    Change(
        "kernel/calls/call_queue.py",
        "        for timer in call.timers:\n            timer.cancel()\n",
        "",
        f"{_QUEUE} kernel/calls/test_stopping.py",
    ),
    Change(
        "kernel/calls/active_call.py",
        "if self.has_ended or self.stop_request is not None:",
        "if self.has_ended:",
        "kernel/calls/test_active_call.py kernel/calls/test_stopping.py",
    ),
    Change(
        "kernel/calls/active_call.py",
        "            if self.has_ended:\n                return\n            self.move(state)",
        "            self.move(state)",
        "kernel/calls/test_active_call.py kernel/calls/test_stopping.py",
    ),
    Change(
        "kernel/calls/active_call.py",
        "if self.is_interrupted and self.restart_delay:",
        "if self.restart_delay:",
        "kernel/calls/test_active_call.py",
    ),
    Change(
        "kernel/calls/active_call.py",
        "self.shown_arguments = dict.fromkeys(self.arguments, MASK)",
        "self.shown_arguments = self.arguments",
        _LOG,
    ),
    Change(
        "kernel/calls/active_call.py",
        "self.shown_arguments = redact_arguments(schema, self.shown_arguments)",
        "pass",
        _LOG,
    ),
    Change(
        "kernel/calls/active_call.py",
        "        if self.target is None:\n            self.shown",
        "        if True:\n            self.shown",
        _LOG,
    ),
    Change(
        "kernel/calls/call_log.py",
        "            call.shown_arguments = arguments\n",
        "            pass\n",
        _LOG,
    ),
    Change(
        "kernel/calls/call_log.py",
        "while len(self._ended) > self.most:",
        "while len(self._ended) > self.most + 1:",
        _LOG,
    ),
    Change(
        "kernel/calls/call_log.py",
        "                self._forget_result(number)\n        return",
        "        return",
        _LOG,
    ),
    Change(
        "kernel/calls/call_log.py",
        "        except Exception:\n            logger",
        "        except OSError:\n            logger",
        _LOG,
    ),
    Change(
        "kernel/calls/logged_call.py",
        "    text = scrub(text, call.capture.secrets)\n",
        "",
        _LOG,
    ),
    Change(
        "kernel/calls/stopping.py",
        "            self._start_next(call.tool)\n",
        "",
        _STOPPING,
    ),
    Change(
        "kernel/calls/stopping.py",
        'if call.run != "main":',
        "if False:",
        f"{_STOPPING} kernel/calls/test_runners.py",
    ),
    Change(
        "kernel/calls/stopping.py",
        "limit = self._time_limit if own_limit is None else own_limit",
        "limit = own_limit if self._time_limit is None else self._time_limit",
        _STOPPING,
    ),
    Change(
        "kernel/calls/stopping.py",
        "        timer.daemon = True\n",
        "",
        _STOPPING,
    ),
    Change(
        "kernel/calls/interrupts.py",
        "if self._interrupter.signal_count > self._signals_before:",
        "if self._interrupter.signal_count > 0:",
        "kernel/calls/test_interrupts.py kernel/calls/test_runners.py",
    ),
    Change(
        "kernel/calls/interrupts.py",
        "signal.signal(signal.SIGINT, self._previous)",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "kernel/calls/test_interrupts.py",
    ),
    Change(
        "kernel/calls/interrupts.py",
        "        if self._calls:\n            self._loop.call_soon_threadsafe(self._on_interrupt)",
        "        if True:\n            self._loop.call_soon_threadsafe(self._on_interrupt)",
        "kernel/calls/test_interrupts.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        "            if call.state is not CallState.QUEUED:\n",
        "            if True:\n",
        "kernel/calls/test_runners.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        "is_reusable = request is None and not result.is_error and not call.elicitations.is_used",
        "is_reusable = request is None and not call.elicitations.is_used",
        "kernel/calls/test_result_cache.py kernel/calls/test_invoker.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        "        self._queue.finish(call)\n        self._start_waiting(call.tool)\n",
        "        self._queue.finish(call)\n",
        "kernel/calls/test_runners.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        "        self._context = contextvars.copy_context()\n\n    def abandon",
        "\n    def abandon",
        f"kernel/calls/test_environment.py {_CALLS}",
    ),
    Change(
        "kernel/calls/runners.py",
        "            self._loop.call_soon(task.cancel)\n",
        "            pass\n",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/runners.py",
        "        self._execution.environment.router.release()\n",
        "",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/result_cache.py",
        "if age >= entry.lifetime or",
        "if",
        "kernel/calls/test_result_cache.py",
    ),
    Change(
        "kernel/calls/result_cache.py",
        "            if ticket.generation != self._generation:\n                return\n",
        "",
        "kernel/calls/test_result_cache.py",
    ),
    Change(
        "kernel/calls/result_cache.py",
        "            self._entries.move_to_end(place)\n",
        "",
        "kernel/calls/test_result_cache.py",
    ),
    Change(
        "kernel/calls/task_guards.py",
        "            self._gate = outer\n",
        "            self._gate = None\n",
        "kernel/calls/test_task_guards.py",
    ),
    Change(
        "kernel/calls/streams.py",
        "        take(text)\n        return len(text)",
        "        take(text)\n        return None",
        "kernel/calls/test_streams.py kernel/calls/test_capture.py",
    ),
    # -- kernel/safe -------------------------------------------------------------------------------
    Change(
        "kernel/safe/deadline.py",
        "        if outer is None or not outer.is_here():\n",
        "        if outer is None:\n",
        "kernel/safe/test_deadline.py",
    ),
    Change(
        "kernel/safe/deadline.py",
        "            if self._clock[1] is not None:\n                return function(value)\n",
        "",
        "kernel/safe/test_deadline.py",
    ),
    Change(
        "kernel/safe/deadline.py",
        "                wait = _RETRY_AFTER\n",
        "                return\n",
        "kernel/safe/test_deadline.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "            return self._is_open and self._send()",
        "            return self._send()",
        "kernel/safe/test_interrupter.py kernel/calls/test_interrupts.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "                was_interrupted = True\n",
        "                was_interrupted = False\n",
        "kernel/safe/test_interrupter.py kernel/calls/test_interrupts.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "        if signal.getsignal(self._signum) == signal.SIG_DFL:\n            return False",
        "        if False:\n            return False",
        "kernel/safe/test_interrupter.py kernel/calls/test_interrupts.py",
    ),
    # -- kernel/link -------------------------------------------------------------------------------
    Change(
        "kernel/link/call_stops.py",
        "        self._calls.log.subscribe(self)\n",
        "",
        _STOPS,
    ),
    Change(
        "kernel/link/call_stops.py",
        "        self._calls.cancel(call, request.reason)\n        self._answer()\n",
        "        self._calls.cancel(call, request.reason)\n",
        _STOPS,
    ),
    Change(
        "kernel/link/conversation.py",
        "        self._changes.send()  # the client may call the tools that this call declared\n",
        "",
        "kernel/link/test_conversation.py kernel/link/test_endpoint.py",
    ),
    Change(
        "kernel/link/conversation.py",
        "(self.notices is not None and self.notices.is_used)",
        "self.notices is not None",
        "kernel/link/test_conversation.py",
    ),
    Change(
        "kernel/link/conversation.py",
        "message.reason or _CANCELLED",
        "_CANCELLED",
        "kernel/link/test_conversation.py",
    ),
    Change(
        "kernel/link/endpoint.py",
        "        if self._token is not None and not hmac",
        "        if self._token is None and not hmac",
        "kernel/link/test_endpoint.py",
    ),
    Change(
        "kernel/link/tool_changes.py",
        "min(now + CHANGE_DELAY, self._latest)",
        "now + CHANGE_DELAY",
        "kernel/link/test_endpoint.py kernel/link/test_conversation.py",
    ),
    Change(
        "kernel/link/endpoint.py",
        "        self._last_refusal = None\n        conversation.send",
        "        conversation.send",
        "kernel/link/test_endpoint.py",
    ),
    Change(
        "kernel/link/resource_store.py",
        "                        self._entries.move_to_end(key)\n                        return",
        "                        return",
        "kernel/link/test_resource_store.py",
    ),
    Change(
        "kernel/link/resource_store.py",
        "or len(self._entries) > MAX_ORIGINALS)",
        "or len(self._entries) > 2 * MAX_ORIGINALS)",
        "kernel/link/test_resource_store.py",
    ),
    Change(
        "kernel/link/progress_notices.py",
        "        if newest != self._last_sent:  # a tool may report the same over and over\n",
        "        if True:\n",
        "kernel/link/test_progress_notices.py",
    ),
    Change(
        "kernel/link/log_notices.py",
        'self._periods[number >= LEVELS["warning"]]',
        "self._periods[0]",
        "kernel/link/test_log_notices.py",
    ),
    Change(
        "kernel/link/log_notices.py",
        "            self._reported += number\n",
        "            pass\n",
        "kernel/link/test_log_notices.py",
    ),
    # -- kernel/tools and kernel/notebook ----------------------------------------------------------
    Change(
        "kernel/tools/tool_registry.py",
        "        if is_change:\n            self._on_change()",
        "        self._on_change()",
        "kernel/tools/test_tool_registry.py",
    ),
    Change(
        "kernel/tools/dropped_tools.py",
        " if name not in tools}",
        "}",
        "kernel/tools/test_dropped_tools.py kernel/tools/test_tool_registry.py",
    ),
    Change(
        "kernel/tools/dropped_tools.py",
        "entry.cell is not None and entry.cell == drop.cell",
        "False",
        "kernel/tools/test_dropped_tools.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        " or self._cell_since is not None:\n            return",
        ":\n            return",
        "kernel/calls/test_invoker.py",
    ),
    Change(
        "kernel/notebook/cell_tools.py",
        'not getattr(result, "success", False)',
        "False",
        "kernel/notebook/test_cell_tools.py",
    ),
    # -- kernel/schemas and kernel/results ---------------------------------------------------------
    Change(
        "kernel/schemas/validation_messages.py",
        "max(len(lines) - MAX_LINES, 0) + others",
        "len(lines) - MAX_LINES + others",
        "kernel/schemas/test_validation_messages.py kernel/schemas/test_input_schema.py",
    ),
    Change(
        "kernel/results/blocks/budget.py",
        "picture_bytes=min(settings.max_picture_bytes, settings.max_result_bytes)",
        "picture_bytes=settings.max_picture_bytes",
        "kernel/results/blocks/test_budget.py kernel/results/blocks/test_fit.py",
    ),
    Change(
        "kernel/results/blocks/fit.py",
        "if size <= share or isinstance(piece.block, Image)",
        "if isinstance(piece.block, Image)",
        "kernel/results/blocks/test_fit.py",
    ),
    Change(
        "kernel/results/blocks/fit.py",
        "            return len(json.dumps(block.data))  # as some transports send it: in ASCII\n",
        "            return len(block.data)\n",
        "kernel/results/blocks/test_fit.py kernel/results/blocks/test_embedded.py",
    ),
    Change(
        "kernel/results/blocks/truncation.py",
        "        for _ in range(2):  #",
        "        for _ in range(1):  #",
        "kernel/results/blocks/test_truncation.py kernel/results/blocks/test_fit.py",
    ),
    Change(
        "kernel/results/blocks/truncation.py",
        "key=lambda text: (not text.is_partial, -text.length)",
        "key=lambda text: (not text.is_partial, text.length)",
        "kernel/results/blocks/test_truncation.py",
    ),
    # -- wire --------------------------------------------------------------------------------------
    Change(
        "wire/frames.py",
        "        if length > MAX_HEADER:\n",
        "        if length >= MAX_HEADER:\n",
        _FRAMES,
    ),
    Change(
        "wire/frames.py",
        "    if sum(lengths) > MAX_ATTACHMENTS:\n",
        "    if max(lengths, default=0) > MAX_ATTACHMENTS:\n",
        _FRAMES,
    ),
    Change(
        "wire/content_blocks.py",
        "        if not 0 <= data < len(attachments):\n",
        "        if not data < len(attachments):\n",
        "wire/test_content_blocks.py",
    ),
    # -- discovery ---------------------------------------------------------------------------------
    Change(
        "discovery.py",
        "        is_its_own = path.name == make_socket_name(record.id) and is_own(status)\n",
        "        is_its_own = is_own(status)\n",
        "test_discovery.py",
    ),
    Change(
        "discovery.py",
        "abs(started - process.started) < _START_TOLERANCE",
        "started - process.started < _START_TOLERANCE",
        "test_discovery.py",
    ),
    Change(
        "private_files.py",
        '    | getattr(os, "O_NOFOLLOW", 0)\n',
        "",
        "test_private_files.py test_discovery.py",
    ),
    Change(
        "discovery.py",
        '        if _read_record(folder / f"{record.id}{_SUFFIX}") == record:\n',
        "        if True:\n",
        "test_discovery.py",
    ),
    Change(
        "discovery.py",
        "        self._paths = frozenset(problems)\n",
        "",
        "test_discovery.py",
    ),
    Change(
        "discovery.py",
        '    if record.owner == "user":',
        "    if True:",
        "test_discovery.py",
    ),
    Change(
        "private_files.py",
        '    | getattr(os, "O_NONBLOCK", 0)',
        "    | 0",
        "test_private_files.py",
    ),
    Change(
        "departures.py",
        "< KEEP  # a clock",
        "< 9 * KEEP  # a clock",
        "test_departures.py kernel/tools/test_dropped_tools.py",
    ),
    Change(
        "bridge/kernels/former_tools.py",
        "        if len(self._tools) > MAX_NAMES:",
        "        if False:",
        "bridge/kernels/test_former_tools.py",
    ),
    Change(
        "bridge/kernels/former_tools.py",
        "        self._tools.pop(name, None)\n",
        "",
        "bridge/kernels/test_former_tools.py",
    ),
    Change(
        "bridge/kernels/catalog.py",
        "self._find_dropped(name) or self._former.find(name)",
        "self._former.find(name)",
        "bridge/kernels/test_catalog.py",
    ),
    Change(
        "bridge/kernels/catalog.py",
        "name is None and len(new) == 1 and",
        "name is None and new and",
        "bridge/kernels/test_catalog.py",
    ),
    Change(
        "bridge/kernels/links.py",
        "is_forgotten = on_end is None and is_newest",
        "is_forgotten = on_end is None",
        _LINKS,
    ),
    Change(
        "bridge/kernels/replicas.py",
        "        return min(linked, key=rank)",
        "        return linked[0]",
        "bridge/kernels/test_replicas.py",
    ),
    Change(
        "bridge/kernels/replicas.py",
        "        if earlier is not None and earlier in links:",
        "        if False:",
        "bridge/kernels/test_replicas.py e2e/test_replicas.py",
    ),
    Change(
        "bridge/kernels/replicas.py",
        " and _is_same(replica.tools[name], tool)",
        "",
        "bridge/kernels/test_replicas.py",
    ),
    Change(
        "bridge/kernels/replicas.py",
        " or notebook.replicas[chosen].is_lost:",
        ":",
        "bridge/kernels/test_replicas.py",
    ),
    Change(
        "bridge/kernels/replicas.py",
        "link.main_calls if needs_main else 0",
        "0",
        "bridge/kernels/test_replicas.py",
    ),
    Change(
        "bridge/kernels/replicas.py",
        "key=lambda replica: replica.is_lost)",
        "key=lambda _: False)",
        "bridge/kernels/test_replicas.py",
    ),
    Change(
        "bridge/headless/replica_set.py",
        "                self._next = None  # it may be saved again",
        "                pass  # it may be saved again",
        "bridge/headless/test_replica_set.py",
    ),
    Change(
        "bridge/headless/generation.py",
        "min(fit // versions, most",
        "min(fit, most",
        "bridge/headless/test_replica_set.py",
    ),
    Change(
        "bridge/headless/replica_set.py",
        "                self._retired.stop_lingering()\n",
        "                pass\n",
        "bridge/headless/test_replica_set.py",
    ),
    Change(
        "bridge/headless/generation.py",
        "            supervisor.retire()\n",
        "            pass\n",
        "bridge/headless/test_replica_set.py",
    ),
    Change(
        "bridge/headless/folder_owner.py",
        "            if owner.host == socket.gethostname() and not is_alive(owner):",
        "            if True:",
        "bridge/headless/test_folder_owner.py",
    ),
    Change(
        "bridge/headless/kernel_process.py",
        "                    extra_arguments=[_NO_HISTORY],\n",
        "",
        "bridge/headless/test_kernel_process.py",
    ),
    Change(
        "bridge/headless/supervisor.py",
        "                link.close(await describe_end())\n",
        "                pass\n",
        "bridge/headless/test_supervisor.py",
    ),
    Change(
        "cli_runner.py",
        "add_signal_handler(number, scope.cancel)",
        "add_signal_handler(number, list)",
        "test_cli.py",
    ),
    # -- bridge ------------------------------------------------------------------------------------
    Change(
        "bridge/kernels/running_call.py",
        "self._progress = None  # its message says",
        "pass  # its message says",
        f"bridge/kernels/test_running_call.py {_ELICITATION}",
    ),
    Change(
        "bridge/kernels/running_call.py",
        "if not self.is_cancelled and not self._is_task_told and not self._result.done():\n",
        "if not self.is_cancelled and not self._is_task_told:\n",
        f"bridge/kernels/test_running_call.py {_LINKS}",
    ),
    Change(
        "bridge/kernels/links.py",
        "        if self._links.get(link.record.id) is not link:\n            return False\n",
        "",
        _LINKS,
    ),
    Change(
        "bridge/kernels/links.py",
        "            self._first_attempts.discard(record.id)\n            self._pending",
        "            self._pending",
        _LINKS,
    ),
    Change(
        "bridge/kernels/link.py",
        "            if isinstance(message, messages.Returned):\n"
        "                del self._calls[message.id]\n",
        "",
        _LINKS,
    ),
    Change(
        "bridge/kernels/link.py",
        '            call.cancel("The bridge was stopped.")\n',
        "",
        _LINKS,
    ),
    Change(
        "bridge/kernels/catalog.py",
        "    entries.sort(key=lambda entry: -_read_priority(entry.tool))  # stable\n",
        "    entries.sort(key=lambda entry: _read_priority(entry.tool))\n",
        "bridge/kernels/test_catalog.py",
    ),
    Change(
        "bridge/kernels/catalog.py",
        "        used.add(full_name)\n",
        "",
        "bridge/kernels/test_catalog.py",
    ),
    Change(
        "bridge/access/shares.py",
        "        self._total -= 1\n",
        "        pass\n",
        "bridge/access/test_shares.py",
    ),
    Change(
        "bridge/server/parked_calls.py",
        "        self._remove(state)\n",
        "",
        _ELICITATION,
    ),
    Change(
        "bridge/server/parked_calls.py",
        "if parked is None or parked.request != _serialize_request(caller, name, arguments):",
        "if parked is None:",
        _ELICITATION,
    ),
    Change(
        "bridge/server/elicitation.py",
        "                    scopes.pop(number).cancel()\n",
        "                    scopes.pop(number)\n",
        _ELICITATION,
    ),
    Change(
        "bridge/server/resources.py",
        "            after = number if link.place == place else 0\n",
        "            after = number\n",
        "bridge/server/test_resources.py e2e/test_resources.py",
    ),
    Change(
        "bridge/server/change_notices.py",
        "            listener.is_busy = False\n",
        "            pass\n",
        "bridge/server/test_change_notices.py",
    ),
    Change(
        "bridge/server/mcp_types.py",
        "        if done is None or done <= last:\n",
        "        if done is None or done < last:\n",
        "bridge/server/test_mcp_types.py",
    ),
    Change(
        "bridge/access/gate.py",
        'if len(values) == 1 and scheme.lower() == "bearer"',
        'if scheme.lower() == "bearer"',
        "bridge/access/test_gate.py",
    ),
    Change(
        "bridge/access/gate.py",
        '"user": user}',
        '"user": None}',
        "e2e/test_tokens.py",
    ),
    Change(
        "bridge/access/named_tokens.py",
        "        if owner.is_void:\n",
        "        if False:\n",
        _TOKENS,
    ),
    Change(
        "bridge/access/named_tokens.py",
        "        if owner.has_expired():\n",
        "        if False:\n",
        _TOKENS,
    ),
    Change(
        "bridge/access/named_tokens.py",
        "owner.permissions if owner.exclusive else self._hide(owner.permissions)",
        "owner.permissions",
        _TOKENS,
    ),
    Change(
        "bridge/access/token_store.py",
        "& 0o077",
        "& 0o007",
        "bridge/access/test_token_store.py",
    ),
    Change(
        "bridge/access/token_store.py",
        '            with lock_private(self.path.with_suffix(".lock")):\n',
        "            if True:\n",
        "bridge/access/test_token_store.py",
    ),
    Change(
        "bridge/access/permitted_tools.py",
        "            return _hide_related(entry, tools.names)",
        "            return entry",
        "bridge/access/test_permitted_tools.py",
    ),
    Change(
        "bridge/access/permitted_tools.py",
        "        case ToolGone() if name in tools.past_names:\n",
        "        case ToolGone():\n",
        "bridge/access/test_permitted_tools.py",
    ),
    Change(
        "bridge/server/parked_calls.py",
        "[caller, name, arguments]",
        "[name, arguments]",
        "bridge/server/test_parked_calls.py",
    ),
    Change(
        "bridge/server/subscriptions.py",
        "        has_changed = tools is not self._tools\n",
        "        has_changed = True\n",
        "bridge/server/test_subscriptions.py",
    ),
    Change(
        "bridge/transports/sessions.py",
        'owner["client_id"] != scope[SCOPE_KEY].owns',
        "False",
        "bridge/transports/test_sessions.py",
    ),
    Change(
        "bridge/access/gate.py",
        "        return all(\n            origin.startswith",
        "        return any(\n            origin.startswith",
        "bridge/access/test_gate.py",
    ),
    Change(
        "bridge/transports/stdio.py",
        "            await self._writable.wait()\n",
        "",
        "bridge/transports/test_stdio.py",
    ),
    Change(
        "bridge/transports/connections.py",
        "0 if self._has_progress else self._unread + len(data)",
        "0 if self._has_progress else len(data)",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        "if len(self.headers) >= MAX_HEADERS:",
        "if len(self.headers) > MAX_HEADERS:",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        "            return  # a trailer is no header\n",
        "            pass\n",
        _SMUGGLING,
    ),
    Change(
        "bridge/transports/connections.py",
        "if self.cycle is not None and not self.cycle.response_complete:\n            self._stop",
        "if self.cycle is not None and self.cycle.more_body:\n            self._stop",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        '            stranger.end(HTTPStatus.SERVICE_UNAVAILABLE, "there',
        '            str(HTTPStatus.SERVICE_UNAVAILABLE, "there',
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        "self._strangers.popitem(last=False)",
        "self._strangers.popitem()",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        "call_later(PROOF_LIMIT, self._expire, number)",
        "call_later(10_000 * PROOF_LIMIT, self._expire, number)",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        '        self.settle(scope["state"][_STATE_KEY])\n',
        "        pass\n",
        _CONNECTIONS,
    ),
    Change(
        "bridge/transports/connections.py",
        "any(map(_announces_body, self.headers))",
        "all(map(_announces_body, self.headers))",
        _SMUGGLING,
    ),
    Change(
        "bridge/transports/connections.py",
        "if self.parser.get_http_version() not in _VERSIONS:",
        "if self.parser.get_http_version() in _VERSIONS[:0]:",
        _SMUGGLING,
    ),
    Change(
        "bridge/transports/json_responses.py",
        "        if self._has_answered:\n            return\n",
        "",
        "bridge/transports/test_json_responses.py",
    ),
    # -- stopping calls, and what their threads share ----------------------------------------------
    Change(
        "kernel/calls/execution.py",
        "                _raise_if_stopped(call)  # it came before the gate took interrupts\n",
        "",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/execution.py",
        "            _raise_if_stopped(call)\n            return wait(call, coroutine)",
        "            return wait(call, coroutine)",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/runners.py",
        "                    raise asyncio.CancelledError\n",
        "                    pass\n",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/runners.py",
        "        on_result(outcome)\n        self._watch.release()",
        "        on_result(outcome)",
        "e2e/test_soak.py",
    ),
    Change(
        "kernel/calls/runners.py",
        "            self._loop.call_soon_threadsafe(self._watch.release)\n\n",
        "            pass\n\n",
        "e2e/test_soak.py",
    ),
    Change(
        "kernel/calls/interrupts.py",
        "            self._previous(signum, frame)\n",
        "            pass\n",
        "kernel/calls/test_interrupts.py",
    ),
    Change(
        "kernel/calls/interrupts.py",
        "current is signal.default_int_handler or self._is_cell_running()",
        "current is signal.default_int_handler",
        "kernel/calls/test_runners.py",
    ),
    Change(
        "kernel/calls/interrupts.py",
        "        if self._interrupter.close():\n            raise KeyboardInterrupt\n",
        "        pass\n",
        "kernel/calls/test_runners_in_process.py",
    ),
    Change(
        "kernel/calls/stopping.py",
        "            call.capture.steps.interrupt()\n",
        "",
        "kernel/calls/test_stopping.py",
    ),
    Change(
        "kernel/calls/stopping.py",
        "        with call.lock:\n",
        "        if True:\n",
        "kernel/calls/test_call_queue.py",
    ),
    Change(
        "kernel/calls/call_queue.py",
        "        with self.lock:\n            call, running =",
        "        if True:\n            call, running =",
        "kernel/calls/test_call_queue.py",
    ),
    Change(
        "kernel/calls/call_queue.py",
        "        with self.lock:\n            if call.state is not",
        "        if True:\n            if call.state is not",
        "kernel/calls/test_call_queue.py",
    ),
    Change(
        "kernel/calls/active_call.py",
        "        with self.lock:\n            if self.has_ended or self",
        "        if True:\n            if self.has_ended or self",
        "kernel/calls/test_call_queue.py",
    ),
    Change(
        "kernel/calls/capture.py",
        "        with self._lock:\n            self._depth += 1",
        "        if True:\n            self._depth += 1",
        "kernel/calls/test_capture.py",
    ),
    Change(
        "kernel/calls/invoker.py",
        "        call.elicitations.close(Cancelled(_ENDED))\n",
        "",
        "kernel/calls/test_invoker.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "            is_due = self._is_sent  #",
        "            is_due = False  #",
        "kernel/safe/test_interrupter.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "is_on_its_way and now - self._sent_at < REPEAT_AFTER",
        "is_on_its_way",
        "kernel/safe/test_interrupter.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "        with self._lock:\n            return self._is_open",
        "        if True:\n            return self._is_open",
        "kernel/safe/test_interrupter.py",
    ),
    Change(
        "kernel/safe/interrupter.py",
        "                with self._lock:\n                    self._take_back()",
        "                if True:\n                    self._take_back()",
        "kernel/safe/test_interrupter.py",
    ),
    Change(
        "kernel/link/conversation.py",
        "            self._answer_failure(message, error)\n",
        "            raise\n",
        "kernel/link/test_conversation.py",
    ),
    Change(
        "bridge/kernels/link.py",
        "            self._answer_failure(message, error)\n",
        "            raise\n",
        "bridge/kernels/test_link.py bridge/kernels/test_links.py",
    ),
    # -- what comes from outside -------------------------------------------------------------------
    Change(
        "bridge/headless/notebook.py",
        "    await check_trust(path, text, settings, is_told=tells_distrust)\n",
        "",
        "bridge/headless/test_notebook_trust.py",
    ),
    Change(
        "bridge/headless/notebook_trust.py",
        "    if settings.trusted_only:",
        "    if False:",
        "bridge/headless/test_notebook_trust.py",
    ),
    Change(
        "bridge/headless/notebook_trust.py",
        "None if is_signed else",
        "None if digest else",
        "bridge/headless/test_notebook_trust.py",
    ),
    Change(
        "bridge/transports/stdio.py",
        "        raise _OddRequestId\n",
        "        pass\n",
        "bridge/transports/test_stdio.py",
    ),
    Change(
        "bridge/server/elicitation.py",
        "    if not can_elicit(request):  # the kernel",
        "    if False:  # the kernel",
        "bridge/server/test_elicitation.py",
    ),
    Change(
        "wire/frames.py",
        "return _clean(json.loads(body, parse_int=lambda digits: _parse_int(digits, too_long)))",
        "return json.loads(body, parse_int=lambda digits: _parse_int(digits, too_long))",
        _FRAMES,
    ),
    Change(
        "kernel/link/resource_store.py",
        "later[: max(limit, 0)]",
        "later[:limit]",
        "kernel/link/test_resource_store.py",
    ),
    # -- numbers and spans -------------------------------------------------------------------------
    Change(
        "bridge/transports/probes.py",
        "if not (caller.may_read_metrics or caller.permissions.is_everything()):",
        "if False:",
        _PROBES,
    ),
    Change(
        "bridge/transports/probes.py",
        "elif scope[SCOPE_KEY].permissions.is_nothing():",
        "elif False:",
        _PROBES,
    ),
    Change(
        "bridge/transports/probes.py",
        'and scope["path"] == HEALTH_PATH',
        'and scope["path"].startswith(HEALTH_PATH)',
        _PROBES,
    ),
    Change(
        "bridge/transports/probes.py",
        'and scope["method"] in _METHODS  #',
        "#",
        _PROBES,
    ),
    Change(
        "bridge/access/caller.py",
        "return self.tools == NOTHING.tools",
        "return self == NOTHING",
        _PROBES,
    ),
    Change(
        "bridge/access/caller.py",
        'OWNER = Caller(name="owner", may_read_metrics=True)',
        'OWNER = Caller(name="owner")',
        _PROBES,
    ),
    Change(
        "bridge/access/token_store.py",
        "        if self.metrics:\n            return NOTHING\n",
        "",
        "bridge/access/test_named_tokens.py",
    ),
    Change(
        "bridge/telemetry/metrics.py",
        "len(self.tools) >= MAX_TOOLS",
        "False",
        "bridge/telemetry/test_metrics.py",
    ),
    Change(
        "bridge/telemetry/metrics.py",
        "        if open_calls:\n            self.open",
        "        if True:\n            self.open",
        "bridge/telemetry/test_metrics.py",
    ),
    Change(
        "bridge/server/trace_headers.py",
        're.compile(r"[ -~]{1,8192}")',
        're.compile(r"(?s).{1,8192}")',
        _TRACES,
    ),
    Change(
        "bridge/server/trace_headers.py",
        're.compile(r"[ -~]{1,512}")',
        're.compile(r"(?s).{1,512}")',
        _TRACES,
    ),
    Change(
        "bridge/server/trace_headers.py",
        "form.fullmatch(value)",
        "form.match(value)",
        _TRACES,
    ),
    Change(
        "bridge/server/trace_headers.py",
        '        headers.pop("tracestate", None)  # it means nothing alone\n',
        "        pass\n",
        _TRACES,
    ),
    Change(
        "bridge/telemetry/call_tracer.py",
        "start.client[:MAX_CLIENT_TEXT]",
        "start.client",
        _TRACER,
    ),
    Change(
        "bridge/telemetry/call_tracer.py",
        "            del self._spans[start.id]  # never ended: it goes nowhere\n",
        "",
        _TRACER,
    ),
    Change(
        "kernel/calls/spans.py",
        "        if _API not in sys.modules:\n            return None\n",
        "",
        _SPANS,
    ),
    Change(
        "kernel/calls/spans.py",
        "        context.attach(current)\n",
        "",
        _SPANS,
    ),
    Change(
        "kernel/calls/active_call.py",
        "            self.span.end(state)\n",
        "            pass\n",
        _SPANS,
    ),
    Change(
        "kernel/executors/remote_run.py",
        "            with join_trace(trace):\n",
        "            with join_trace(None):\n",
        _SPANS,
    ),
    Change(
        "span_export.py",
        "out=sys.stderr",
        "out=sys.stdout",
        "test_span_export.py",
    ),
    Change(
        "span_export.py",
        "    thread.join(CLOSE_LIMIT)\n",
        "    thread.join()\n",
        "test_span_export.py",
    ),
)
