"""Workflows and actions as typed views of their YAML nodes.

A view knows what a field should be and gives None for anything else: a null job or a list where a mapping belongs
must not stop the rest. Nothing is validated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.records import cached_property
from runner_e2e.yaml_positions import Mapping, Node, Scalar, Sequence, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.yaml_positions import Fields

__all__ = [
    "Action",
    "ActionInput",
    "Block",
    "Input",
    "Job",
    "Step",
    "Workflow",
    "entries",
    "is_action",
    "list_of",
    "scalars",
    "steps_of",
]


def entries(node: Node | None) -> Iterable[tuple[Scalar, Node]]:
    """Entries of a mapping, the first of duplicates only; nothing for any other node."""
    return _fields(node).values()


def _fields(node: Node | None) -> Fields:
    return node.fields if isinstance(node, Mapping) else {}


class Block:
    """A mapping with known fields."""

    def __init__(self, node: Node | None) -> None:
        self.node = node
        self.fields = _fields(node)
        """Field name -> its key and its value, aliases resolved."""

    def get(self, name: str) -> Node | None:
        """Value of a field."""
        found = self.fields.get(name)
        return found[1] if found is not None else None

    def scalar(self, name: str) -> Scalar | None:
        """Value of a field that is a scalar and not null."""
        found = self.fields.get(name)
        if found is None or not isinstance(found[1], Scalar) or found[1].data is None:
            return None
        return found[1]

    def mapping(self, name: str) -> Mapping | None:
        """Value of a field that is a mapping."""
        found = self.fields.get(name)
        return found[1] if found is not None and isinstance(found[1], Mapping) else None

    def text(self, name: str) -> str:
        """Text of a scalar field, empty when there is none."""
        found = self.scalar(name)
        return found.value if found is not None else ""


class Step(Block):
    """One step of a job or of a composite action; *number* counts from 0."""

    def __init__(self, node: Node | None, number: int) -> None:
        super().__init__(node)
        self.number = number

    @property
    def id(self) -> str:
        """The id by which its outputs are known, or empty."""
        return self.text("id")

    @property
    def run(self) -> Scalar | None:
        """The script."""
        return self.scalar("run")

    @property
    def uses(self) -> Scalar | None:
        """The action."""
        return self.scalar("uses")

    @property
    def condition(self) -> Scalar | None:
        """``if``."""
        return self.scalar("if")

    @property
    def env(self) -> Node | None:
        """Variables of this step."""
        return self.get("env")

    @property
    def arguments(self) -> Node | None:
        """``with``."""
        return self.get("with")


def steps_of(node: Node | None) -> tuple[Step, ...]:
    """The steps of a list; entries that are no mappings are left out, the numbers stay."""
    if not isinstance(node, Sequence):
        return ()
    return tuple(Step(item, number) for number, item in enumerate(node) if isinstance(item, Mapping))


class Job(Block):
    """One job: steps on a runner, or a call of a reusable workflow."""

    def __init__(self, key: Scalar, node: Node) -> None:
        super().__init__(node)
        self.key = key

    @property
    def id(self) -> str:
        """Its name in ``jobs``."""
        return self.key.value

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Its steps."""
        return steps_of(self.get("steps"))

    @property
    def uses(self) -> Scalar | None:
        """The reusable workflow it calls."""
        return self.scalar("uses")

    @property
    def condition(self) -> Scalar | None:
        """``if``."""
        return self.scalar("if")

    @property
    def env(self) -> Node | None:
        """Variables of its steps."""
        return self.get("env")

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Ids of the jobs it waits for."""
        node = self.get("needs")
        if isinstance(node, Scalar):
            return (node.value,)
        return tuple(item.value for item in node if isinstance(item, Scalar)) if isinstance(node, Sequence) else ()

    @cached_property
    def matrix(self) -> Node | None:
        """``strategy.matrix``."""
        return Block(self.get("strategy")).get("matrix")

    @property
    def default_run(self) -> Block:
        """``defaults.run``."""
        return Block(Block(self.get("defaults")).get("run"))

    @property
    def runner_labels(self) -> tuple[str, ...]:
        """Constant labels of ``runs-on``."""
        node = self.get("runs-on")
        if isinstance(node, Mapping):
            node = node.get("labels")
        if isinstance(node, Scalar):
            return (node.value,)
        return tuple(item.value for item in node if isinstance(item, Scalar)) if isinstance(node, Sequence) else ()


class Input(Block):
    """An input of a workflow, by its trigger's declaration."""

    def __init__(self, key: Scalar, node: Node) -> None:
        super().__init__(node)
        self.key = key

    @property
    def name(self) -> str:
        """Its name as written."""
        return self.key.value

    @property
    def type(self) -> str:
        """``string`` where nothing is said."""
        return self.text("type") or "string"

    @property
    def options(self) -> tuple[str, ...]:
        """What a choice may be."""
        node = self.get("options")
        return tuple(item.value for item in node if isinstance(item, Scalar)) if isinstance(node, Sequence) else ()


class Workflow(Block):
    """A workflow file."""

    @cached_property
    def triggers(self) -> dict[str, Block]:
        """Event name -> its settings."""
        node = self.get("on")
        if isinstance(node, Scalar):
            return {node.value: Block(None)}
        if isinstance(node, Sequence):
            return {item.value: Block(None) for item in node if isinstance(item, Scalar)}
        return {key.value: Block(value) for key, value in entries(node)}

    def inputs(self, trigger: str) -> tuple[Input, ...]:
        """Inputs that ``workflow_dispatch`` or ``workflow_call`` declares."""
        settings = self.triggers.get(trigger)
        if settings is None:
            return ()
        return tuple(Input(key, value) for key, value in entries(settings.get("inputs")))

    @property
    def call_outputs(self) -> Node | None:
        """``on.workflow_call.outputs``."""
        settings = self.triggers.get("workflow_call")
        return settings.get("outputs") if settings is not None else None

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Its jobs in the order of the file, null ones left out."""
        return tuple(Job(key, value) for key, value in entries(self.get("jobs")) if isinstance(value, Mapping))

    @property
    def env(self) -> Node | None:
        """Variables of all steps."""
        return self.get("env")

    @property
    def default_run(self) -> Block:
        """``defaults.run``."""
        return Block(Block(self.get("defaults")).get("run"))


class ActionInput(Input):
    """An input of an action."""

    @property
    def default(self) -> Scalar | None:
        """What it is when the caller gives nothing."""
        return self.scalar("default")


class Action(Block):
    """An ``action.yml``."""

    @cached_property
    def runs(self) -> Block:
        """``runs``."""
        return Block(self.get("runs"))

    @property
    def kind(self) -> str:
        """``composite``, ``docker`` or the version of node."""
        return self.runs.text("using").lower()

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Steps of a composite action."""
        return steps_of(self.runs.get("steps"))

    @cached_property
    def inputs(self) -> tuple[ActionInput, ...]:
        """What it takes."""
        return tuple(ActionInput(key, value) for key, value in entries(self.get("inputs")))

    @property
    def outputs(self) -> Node | None:
        """What it gives: name -> ``value``."""
        return self.get("outputs")


def is_action(root: Node | None) -> bool:
    """Whether a document is an action and not a workflow."""
    return isinstance(root, Mapping) and root.get("runs") is not None and root.get("jobs") is None


def scalars(node: Node | None) -> Iterator[Scalar]:
    """Every scalar below *node*, each written one once: aliases are not followed."""
    stack = [node] if node is not None else []
    while stack:
        current = stack.pop()
        if isinstance(current, Scalar):
            yield current
        elif isinstance(current, Sequence):
            stack.extend(reversed(current.items))
        elif isinstance(current, Mapping):
            for key, value in reversed(current.pairs):
                stack += (value, key)


def list_of(node: Node | None) -> tuple[Node, ...]:
    """Items of a list, or the node itself as the only one; nothing for None."""
    if node is None:
        return ()
    node = resolved(node)
    return tuple(node) if isinstance(node, Sequence) else (node,)
