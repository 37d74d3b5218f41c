"""Whether edits changed what they were to change and nothing else: the trees before and after, side by side."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.yaml_positions import Alias, Mapping, Node, Scalar, Sequence, compose

if TYPE_CHECKING:
    from collections.abc import Sequence as Items

    from runner_e2e.lint.finding import Edit

__all__ = ["Taken", "applied", "unchanged_elsewhere"]


def applied(text: str, edits: Items[Edit]) -> str:
    """*text* with *edits*, which do not overlap."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    return "".join([*pieces, text[position:]])


class Taken:
    """The places of edits that are to be made together."""

    def __init__(self) -> None:
        self._edits: set[Edit] = set()
        self._places: dict[str, list[tuple[int, int]]] = {}

    def add(self, edits: Items[Edit]) -> bool:
        """Takes the places of *edits*. An edit that is there already is made once.

        False, and nothing is taken, when one is about the same characters as another edit, or inserts at the same
        place.
        """
        new: list[Edit] = []
        for edit in edits:
            if edit in self._edits:
                continue
            if not self._is_free(edit):
                for one in new:
                    self._edits.remove(one)
                    self._places[one.path].remove((one.start, one.end))
                return False
            new.append(edit)
            self._edits.add(edit)
            insort(self._places.setdefault(edit.path, []), (edit.start, edit.end))
        return True

    def _is_free(self, edit: Edit) -> bool:
        # Taken places do not overlap, so those on either side say it all.
        places = self._places.get(edit.path, [])
        at = bisect_left(places, (edit.start, edit.end))
        return all(
            (start, end) != (edit.start, edit.end) and not (start < edit.end and edit.start < end)
            for start, end in places[max(at - 1, 0) : at + 1]
        )


def unchanged_elsewhere(root: Node | None, edits: Items[Edit]) -> bool:
    """Whether the document parses after *edits*, and every node that they do not touch is there as it was.

    A scalar that an edit touches may have another value, and an edit that replaces a whole node another node;
    mappings may have new entries that an edit wrote.
    """
    if root is None:
        return False
    try:
        new = compose(applied(root.source.text, edits), path=root.source.path)
    except ConfigurationError:
        return False
    return new is not None and _Comparison(edits).same(root, new)


class _Comparison:
    def __init__(self, edits: Items[Edit]) -> None:
        self.edits = sorted(edits, key=lambda each: each.start)
        self.written: list[tuple[int, int]] = []
        shift = 0
        for edit in self.edits:
            self.written.append((edit.start + shift, edit.start + shift + len(edit.text)))
            shift += len(edit.text) - (edit.end - edit.start)

    def is_written(self, node: Node) -> bool:
        """Whether an edit wrote the whole node of the new document."""
        return any(start <= node.start and node.end <= end for start, end in self.written)

    def is_replaced(self, node: Node) -> bool:
        """Whether an edit covers the whole old node, or stands where its absent value would."""
        return any(edit.start <= node.start and node.end <= edit.end for edit in self.edits) or (
            isinstance(node, Scalar)
            and node.start == node.end
            and node.source.text[node.start - 1 : node.start] == ":"
            and any(edit.start >= node.start and self._same_line(node, edit) for edit in self.edits)
        )

    @staticmethod
    def _same_line(node: Node, edit: Edit) -> bool:
        return "\n" not in node.source.text[node.start : edit.start]

    def is_touched(self, node: Node) -> bool:
        """Whether an edit stands inside of the old node, or adds to the end of its last line."""
        return any(
            node.start < edit.end and edit.start < node.end
            if edit.start < edit.end
            else node.start < edit.start < node.end or (edit.start == node.end and edit.text[:1] not in {"\r", "\n"})
            for edit in self.edits
        )

    def same(self, old: Node, new: Node) -> bool:
        if self.is_replaced(old) and self.is_written(new):
            return True
        if type(old) is not type(new) or old.tag != new.tag or old.anchor != new.anchor:
            return False
        if isinstance(old, Scalar) and isinstance(new, Scalar):
            return old.style == new.style and (old.value == new.value or self.is_touched(old))
        if isinstance(old, Alias) and isinstance(new, Alias):
            return old.name == new.name
        if isinstance(old, Sequence) and isinstance(new, Sequence):
            return (
                old.flow == new.flow
                and len(old.items) == len(new.items)
                and all(self.same(*pair) for pair in zip(old.items, new.items, strict=True))
            )
        return isinstance(old, Mapping) and isinstance(new, Mapping) and self._same_entries(old, new)

    def _same_entries(self, old: Mapping, new: Mapping) -> bool:
        kept = [pair for pair in new.pairs if not self.is_written(pair[0])]
        return (
            old.flow == new.flow
            and len(kept) == len(old.pairs)
            and all(
                self.same(mine[0], theirs[0]) and self.same(mine[1], theirs[1])
                for mine, theirs in zip(old.pairs, kept, strict=True)
            )
        )
