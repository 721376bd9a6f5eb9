"""A page that shows a notebook: the kernel's end of a side panel, spoken by hand."""

from live import Link

from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.wire import messages

OPEN = "proposals"
"""The part of a notebook's state with the cells that clients propose."""


class Page:
    """A page that shows the notebook, and acts for its user."""

    def __init__(self, kernel):
        records = list_live_records(kernel.home / ".mcp-notebook" / "kernels")
        (record,) = [record for record in records if record.pid == kernel.pid]
        self.kernel, self.link = kernel, Link(record)
        self.state, self.newest = {}, 0
        self.link.send(messages.WatchNotebook())
        self.read()

    def read(self):
        """Take the next message."""
        message = self.link.receive()
        assert message is not None, "the kernel ended the conversation"
        for name in ("proposes", OPEN, "accepted"):
            if (part := getattr(message, name, None)) is not None:
                self.state[name] = part
        return message

    def ask(self, kind, **fields):
        """Send a request, and return the answer."""
        number = next(self.link.ids)
        self.link.send(kind(id=number, **fields))
        while not isinstance(message := self.read(), messages.PanelAnswer):
            pass
        return message

    def wait(self, condition):
        """Read changes until the state is so."""
        while not condition(self.state):
            self.read()

    def find(self, count=1):
        """Wait for so many open proposals, of which the last is new, and return that."""
        self.wait(lambda state: len(state[OPEN]) == count and state[OPEN][-1].number > self.newest)
        self.newest = self.state[OPEN][-1].number
        return self.state[OPEN][-1]

    def take(self, proposal, *, run=True, source=None):
        """Claim a proposal."""
        fields = {"number": proposal.number, "digest": proposal.digest}
        return self.ask(messages.TakeProposal, **fields, run=run, source=source)

    def accept(self, proposal, *, run=True, source=None, cell="new"):
        """Insert a proposal's cell, as a page does, and run it."""
        assert not self.take(proposal, run=run, source=source).is_error
        settle = {"number": proposal.number, "cell": cell}
        self.ask(messages.SettleProposal, outcome="inserted", **settle)
        if run:
            output = self.kernel.run(source or proposal.source, cell=cell, deleted=[])
            outputs = [{"output_type": "stream", "name": "stdout", "text": [output.stdout]}]
            outputs += [{"output_type": "display_data", "data": data} for data in output.displays]
            if output.error:
                name, _, value = output.error.partition(": ")
                outputs = [{"output_type": "error", "ename": name, "evalue": value}]
            self.ask(messages.SettleProposal, outcome="ran", outputs=outputs, **settle)

    def reject(self, proposal, word=""):
        return self.ask(messages.RejectProposal, number=proposal.number, word=word)
