"""How tests that are one conversation each are shared out among pytest's workers."""

from xdist.scheduler import LoadFileScheduling


class ByConversation(LoadFileScheduling):
    """Gives all tests with one parameter to one worker, as those of a file."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, parameter = nodeid.partition("[")
        return parameter or super()._split_scope(file)
