"""The protocol between a kernel and a bridge: its messages, and how they travel.

This docstring is the protocol's specification; `messages.PROTOCOL_VERSION` is its version. There
are two readers of it: bridges and Jupyter servers use this room, and VS Code's extension has the
messages of its side panel in TypeScript (``vscode/src/link.ts``, ``panel/messages.ts``).

*Transport.* A byte stream: a Unix socket, or loopback TCP on systems without Unix sockets. The
kernel listens and bridges connect. Several may be connected at once, each in a conversation of its
own.

*Frame.* A 4-byte big-endian length, then that many bytes of UTF-8 JSON (one object, the header),
then the attachments. The header's ``attachments`` member lists their lengths in bytes and is
omitted when there are none; they follow in that order without separators. Pictures, sounds and
files travel as attachments, and a content block refers to its attachment by index (``"data": 0``).

*Conversation.* The bridge sends `Hello`. The kernel answers with `Welcome`, which holds its tools,
or with `Refused`, which holds a sentence for the user, and then closes. After that, in any order:

===========================  ===================================================================
bridge -> kernel             `Call` (with an id that the bridge chooses, unique in the
                             conversation), `Cancel`, `Answer` to a question of a call,
                             `AskConsent` and `WithdrawConsent`, `ListResources`, `ReadResource`,
                             `Complete` (ids from the same numbers as calls), `Clients`, `StopCall`,
                             `KeepCall`, `AskTask`, `AnswerTask`, `UnknownCall`,
                             `CancelTask`, `WatchNotebook`, `SwitchTool`, `RemoveTool`,
                             `LockTool`, `AnswerConsent`, `AskCall`, `SwitchProposals`,
                             `TakeProposal`, `SettleProposal`, `RejectProposal`, `UndoProposal`
                             (ids as before), `NotebookMoved`
kernel -> bridge             `Tools` (the whole list, after every change), `Progress` of a call,
                             `Log` of a call, `Ask` and `Withdraw` (a question of a call),
                             `Returned` (exactly one per `Call`, always its last message),
                             `Resources` (exactly one per `ListResources`), `Contents`
                             (one per `ReadResource`), `ResourcesChanged`, `Completed`
                             (exactly one per `Complete`), `Consent`, `CallStopped`
                             (exactly one per `StopCall`), `TaskState` (when a call has become
                             a task, and exactly one per request about a task),
                             `NotebookState` (after `WatchNotebook`), `PanelAnswer` (exactly one
                             per `PanelAction`),
                             `CallDetails` (exactly one per `AskCall`), `ShowPanel`, `Goodbye`
                             (the kernel ends the conversation deliberately and says why)
===========================  ===================================================================

*Kinds.* A kernel sends prompts and resources among its tools; the ``kind`` tells them apart. A
`Call` by its name gets a prompt's messages (content blocks with a ``role``) or a resource's
content.

*Changes.* `Tools` follows a change of the tools within a moment, and always before the `Returned`
of the call that made the change.

*Missing tools.* With its tools, a kernel sends the names of the tools that it dropped in the last
minutes, each with the reason, the time, the next step, and the name of its replacement. Bridges
show them to people and to clients that call them; clients do not list them.

*Questions.* A call whose ``can_elicit`` is true may `Ask`, even several questions at once. It waits
for each `Answer` without a time limit, unless it retracts the question with `Withdraw`. An answer
to a question that is no longer open is ignored.

*Callers.* A `Call` carries the name and version that the calling program reports, for the kernel's
log of calls. If the caller is not the user, it also names this guest: a kernel limits the calls of
each guest and of all guests together, so that the user always has a place.

*Consent.* A tool with a ``revision`` runs only if the `Call` repeats it in ``confirmed``: the
bridge has asked a person, who agreed to a call of the tool in its present form. The kernel refuses
all other calls. If the client's user cannot be asked and the kernel's `Welcome` has ``consent``
set, the bridge may ask in the notebook with `AskConsent`. It gets one `Consent`, unless it sends
`WithdrawConsent` first.

*Clients.* The bridge reports its connected clients, and the tools that they see under other names,
after the `Welcome` and after every change. It reports a call of a tool that no notebook has to
every kernel. The notebook shows this to people; nothing else depends on it.

*Stopping.* A `Cancel` stops a call of the same conversation; a `StopCall` stops any call of the
kernel, by its number in the kernel's log, for the user. The `CallStopped` comes when the call has
ended for its client, at most two seconds later.

*Side panels.* After a `WatchNotebook` the kernel sends a `NotebookState` with all parts, and after
changes another one with the parts that have changed, a few times a second at most; if of the tools
only numbers of calls have, ``counts`` has the new ones. Progress is in it also if a call's client
did not ask for any. A watcher can switch a tool off for all bridges and on again, answer the open
questions of any bridge, and ask for a call's arguments and result; it stops calls with `StopCall`.
`ShowPanel` asks it to open the side panel. While a watcher's ``frontend`` has the notebook's
questions, they are not shown in the notebook's outputs.

*Proposals.* While its author allows it, a kernel has a tool by which clients propose cells; it and
the resources that go with it have ``proposes`` set. A watcher's page inserts a cell that a person
accepts: it claims it with `TakeProposal`, which succeeds for one page; then it inserts exactly the
source that it showed, or the one that it sent, reports that with `SettleProposal`, and once more
when the cell has run. The kernel itself never inserts or runs anything.

*Tasks.* A call can become a task: at once if the `Call` has a ``task_owner``, or later by a
`KeepCall`. The kernel confirms it with a `TaskState`. From then on, the task holds the result, the
progress and the questions; the call itself gets only its `Returned` at the end, without the result.
Any conversation can ask for a task by its id (see `task_ids`) and its owner, wait for its next
change, answer its questions and stop it. A task ends with its call or its kernel, and outlives the
conversation.

*Resources.* A kernel may keep resources beyond the results of its calls; their URIs begin with
`resource_uris.make_prefix` of its record's id. They are listed immediately, even while a cell runs,
in the order of their numbers; a number is never reused within a conversation. The content of a
resource is the only attachment of its message, and text is sent as UTF-8. A request names a guest
as a `Call` does; `EndRead` stops one whose answer is no longer wanted.

*Declared resources.* A resource that an author declares is among the tools. A bridge reads it by a
`Call`, whose result holds documents with empty URIs, or takes its ``text``. The kernel tells with
`ResourcesChanged` which of them may have changed, after cells and calls that could have. Both
messages say when declared resources were last modified.

*Variables.* If the bridge's `Hello` has ``inspects`` set, there is also a template for the
notebook's variables, whose ``items`` are those that clients list.

*Ends.* A stream that ends without `Goodbye` means that the kernel's process is dead. A cancelled
call still gets its `Returned`. Calls outlive their connection, so a bridge that shuts down cancels
its own calls.

*Compatibility.* Receivers ignore unknown members of messages and content blocks. Adding a member
therefore needs no new version; changing the meaning of one does.

*Values.* Values that JSON cannot represent are replaced: NaN and infinity by null, a lone surrogate
by U+FFFD, bytes outside attachments by base64 text, a circular reference by "...". No value can
break a link; `frames.encode` refuses a message that is too large before it writes a single byte.

Face, all of it: `messages`, `frames` (messages <-> the bytes of a connection), `content_blocks`
(results and resources <-> messages), `resource_uris`, `task_ids`. Importers write the module's name
(``messages.Call``, ``frames.encode``), because words such as "call" or "resources" mean something
else in most rooms. Everything runs on both sides and is pure, except `frames.FrameProtocol`, which
an event loop calls. The room knows nothing of MCP or IPython; `kernel.link` and `bridge.kernels`
connect the two sides.
"""
