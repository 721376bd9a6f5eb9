"""The protocol between a kernel and a bridge: its messages, and how they travel.

This docstring is the protocol's specification; `messages.PROTOCOL_VERSION` is its version.

*Transport.* A byte stream: a Unix socket, or loopback TCP on systems without Unix sockets. The
kernel listens and bridges connect. Several may be connected at once, each in a conversation of its
own.

*Frame.* A 4-byte big-endian length, then that many bytes of UTF-8 JSON (one object, the header),
then the attachments. The header's ``attachments`` member lists their lengths in bytes and is
omitted when there are none; they follow in that order without separators. Pictures, sounds and
files travel as attachments, and a content block refers to its own by index (``"data": 0``).

*Conversation.* The bridge sends `Hello`. The kernel answers with `Welcome`, which holds its tools,
or with `Refused`, which holds a sentence for the user, and then closes. After that, in any order:

===========================  ===================================================================
bridge -> kernel             `Call` (with an id that the bridge chooses, unique in the
                             conversation), `Cancel`, `Answer` to a question of a call,
                             `AskConsent` and `WithdrawConsent`, `ListResources`, `ReadResource`
                             (ids from the same numbers as calls), `Clients`, `StopCall`,
                             `KeepCall`, `LeaveCall`, `FollowTask`, `AskTask`, `AnswerTask`,
                             `CancelTask`, `WatchNotebook`, `SwitchTool`, `AnswerConsent`,
                             `AskCall` (ids as before)
kernel -> bridge             `Tools` (the whole list, after every change), `Progress` of a call,
                             `Log` of a call, `Ask` and `Withdraw` (a question of a call),
                             `Returned` (exactly one per `Call` and `FollowTask`,
                             always its last message),
                             `Resources` (exactly one per `ListResources`), `Contents`
                             (exactly one per `ReadResource`), `Consent`, `CallStopped`
                             (exactly one per `StopCall`), `TaskState` (when a call has become
                             a task, and exactly one per request about a task),
                             `NotebookState` (after `WatchNotebook`), `PanelAnswer` (exactly one
                             per `SwitchTool` and `AnswerConsent`), `CallDetails` (exactly one
                             per `AskCall`), `Goodbye` (the kernel ends the conversation
                             deliberately and says why)
===========================  ===================================================================

*Changes.* After a change of the tools, `Tools` follows within a moment, and always before the
`Returned` of a call that made the change.

*Missing tools.* With its tools a kernel sends the names of those that it had some minutes ago, each
with what became of it: the reason, the time, the next step, and the name of the tool that came in
its place. Bridges tell people and those who call them; clients do not list them.

*Large arguments.* A bridge does not parse the arguments of a call if they are large. It attaches
them to the `Call` as the JSON text of the client, and the kernel parses them; what is not an object
is the tool's failure, not the link's. It does so only if the kernel's `Welcome` has
``attached_arguments`` set. The attachment may also be a longer text that has the arguments in it,
such as the whole request of the client, if the `Welcome` has ``finds_arguments`` set: the `Call`
says where, in ``arguments_at``.

*Questions.* A call whose ``can_elicit`` is true may `Ask`, even several questions at once. It waits
for an `Answer` to each of them without a time limit, unless it retracts the question with
`Withdraw`. An answer to a question that is no longer open is ignored.

*Traces.* A `Call` may say which trace it belongs to, in the headers of W3C's Trace Context and
Baggage. The kernel hands them to the tool, and a span that it makes is a child of theirs.

*Clients.* A `Call` has name and version of the program that calls, as that says itself, for the
kernel's log of calls. It also says which guest makes it, if it is not the user: a kernel takes so
many calls of each guest, and of all guests, that the user's still have a place.

*Consent.* A tool with a ``revision`` runs only if the `Call` has it as ``confirmed``: the bridge
has asked a person, who has agreed to a call of the tool as it is now. The kernel refuses other
calls, among them those of bridges that know nothing of this. Where the client's user cannot be
asked, the bridge may ask in the notebook, with `AskConsent`, if the kernel's `Welcome` has
``consent`` set. It gets one `Consent`, unless it sends `WithdrawConsent` before.

*Clients.* A bridge says which clients are connected to it, and which of the kernel's tools they see
under other names, after the kernel's `Welcome` and after every change, if the `Welcome` has
``clients`` set. It tells people who look at the notebook; nothing else depends on it.

*Stopping.* A `Cancel` stops a call of the same conversation; a `StopCall` stops any call of the
kernel, by its number in the kernel's log, for the user. Its `CallStopped` comes when the call has
ended for its client: at most two seconds later. Bridges send it only if the kernel's `Welcome` has
``stops_calls`` set.

*Side panels.* After a `WatchNotebook` the kernel sends a `NotebookState` with all parts, and after
changes another one with the parts that have changed, a few times a second at most. Progress is in
it also if a call's client did not ask for any. A watcher can switch a tool off for all bridges and
on again, answer the open questions of any bridge, and ask for a call's arguments and result; it
stops calls with `StopCall`. While somebody watches, questions are not shown in the notebook's
outputs. Bridges send these messages only if the kernel's `Welcome` has ``panel`` set.

*Tasks.* A call can become a task: at once if the `Call` has ``keep`` set, or later by a `KeepCall`.
The kernel says so with a `TaskState`. From then on it sends nothing of the call but its `Returned`
at the end, without the result: the task has that, the progress and the questions. Any conversation
can ask for a task by its id (see `task_ids`) and its owner, wait for its next change, answer its
questions and stop it. A task ends with its call or with its kernel, whichever conversation ends
before. Bridges make tasks only if the kernel's `Welcome` has ``tasks`` set.

*Calls that are given up.* If the ``keep`` of a `Call` says so, a `Cancel`, or the end of the
conversation, does not stop it: it goes on as a task. A later `Call` of the same tool, arguments and
owner, whose ``keep`` says the same, does not run while that goes on, or as long as nobody has got
its result: it gets that. Both then wait for the same task, and each gets its `Returned`. Who has
the task's id waits in the same way with a `FollowTask`. A `KeepCall` ends the waiting: the kernel
answers with the task's `TaskState`, and with a `Returned` that says that nobody waits. A
`LeaveCall` is a `Cancel` that stops no call: one that cannot go on as a task runs on as before.

*Resources.* A kernel may keep more than the results of its calls; the URIs of what it keeps begin
with `resource_uris.make_prefix` of its record's id. They are listed immediately, even while a cell
runs, in the order of their numbers; a number is never reused within a conversation. The content of
a resource is the only attachment of its message, and text is sent as UTF-8. A bridge asks a kernel
for resources only if the kernel's `Welcome` has ``resources`` set: an older kernel would treat the
request as an error and hang up. Kernels never send anything about resources unasked, so they need
not know whether the bridge understands it.

*Ends.* A stream that ends without `Goodbye` means that the kernel's process is dead. A `Cancel` is
still answered with `Returned`. Calls outlive their connection: a bridge that shuts down cancels its
own calls.

*Compatibility.* A receiver ignores members that it does not know, in messages and in content
blocks. Adding a member therefore needs no new version; changing the meaning of one does.

*Values.* Whatever JSON cannot represent is sent as the nearest thing that it can: NaN and infinity
as null, a lone surrogate as U+FFFD, bytes outside attachments as base64 text, a circular reference
as "...". No value can break a link; a message that is too large is refused by `frames.encode`
before a single byte is written.

Face, all of it: `messages`, `frames` (messages <-> the bytes of a connection), `content_blocks`
(results and resources <-> messages), `resource_uris`, `task_ids`. Importers write the module's name
(``messages.Call``, ``frames.encode``), because words such as "call" or "resources" mean something
else in most rooms. All of it runs on both sides and is pure, but for `frames.FrameProtocol`, which
an event loop calls. The room knows nothing of MCP, IPython or the other end: connecting is the
business of `kernel.link` and `bridge.kernels`.
"""
