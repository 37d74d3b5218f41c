"""What an expression may evaluate to, and how GitHub turns such data into text and numbers.

The data of a run are a JSON-like tree; here every leaf may also be unknown text with labels. Names of entries are
compared without case, as GitHub does.
"""

from __future__ import annotations

import json
import math
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.expression import number_of
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Taint, Value, join, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "ANYTHING",
    "BOOLEAN",
    "FALSE",
    "NULL",
    "NUMBER",
    "TRUE",
    "Anything",
    "Array",
    "Choice",
    "Data",
    "Dictionary",
    "Known",
    "Textual",
    "Unseen",
    "as_number",
    "as_value",
    "changed",
    "from_json",
    "is_primitive",
    "number_text",
    "of_plain",
    "of_value",
    "taints_of",
    "text_of",
    "to_json",
    "truth_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A constant: text, number, boolean or null."""

    value: str | float | bool | None

    def __eq__(self, other: object) -> bool:  # true is not 1 here
        return isinstance(other, Known) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Textual:
    """Text that is not wholly known. ``parsed`` is what it is the JSON of, where that is known."""

    value: Value
    parsed: Data | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A boolean or a number that is not known: it carries no text."""

    kind: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Data of any kind, with the labels that may be in it."""

    taints: frozenset[Taint] = frozenset()


@dataclass(frozen=True, slots=True)
class Array:
    """A list. ``filtered``: it comes from ``.*``, and an index goes to its elements."""

    items: tuple[Data, ...]
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Entries by lower-case name (each with the name as written); *others* is what any other name gives."""

    entries: Mapping[str, tuple[str, Data]] = field(default_factory=dict)
    others: Data = Known(None)

    @staticmethod
    def of(entries: Mapping[str, Data], *, others: Data = Known(None)) -> Dictionary:  # noqa: B008 - it is immutable
        """The dictionary with these names; of two that differ in case only, the first wins."""
        found: dict[str, tuple[str, Data]] = {}
        for name, data in entries.items():
            found.setdefault(name.lower(), (name, data))
        return Dictionary(found, others)

    def get(self, name: str) -> Data:
        """The entry called *name*, in any case."""
        entry = self.entries.get(name.lower())
        return entry[1] if entry is not None else self.others

    @property
    def values(self) -> tuple[Data, ...]:
        """Data of all entries, then of the unknown ones."""
        inner = tuple(data for _, data in self.entries.values())
        return inner if self.others == NULL else (*inner, self.others)

    def __hash__(self) -> int:
        return hash((tuple(self.entries), self.others))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several data, where one place holds what differs from run to run: a key of a matrix."""

    options: tuple[Data, ...]

    @staticmethod
    def of(options: Iterable[Data]) -> Data:
        """The data themselves when there is one, else the choice."""
        flat: dict[Data, None] = {}
        for option in options:
            flat.update(dict.fromkeys(option.options if isinstance(option, Choice) else (option,)))
        return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat)) if flat else NULL


Data: TypeAlias = Known | Textual | Unseen | Anything | Array | Dictionary | Choice

NULL = Known(None)
TRUE = Known(value=True)
FALSE = Known(value=False)
BOOLEAN = Unseen("boolean")
NUMBER = Unseen("number")
ANYTHING = Anything()


def as_value(data: Data) -> Value:
    """The text that *data* becomes inside ``${{ }}``."""
    if isinstance(data, Known):
        return Value.literal(text_of(data.value))
    if isinstance(data, Textual):
        return data.value
    if isinstance(data, Anything):
        return Value.of(data.taints)
    if isinstance(data, Array | Dictionary):
        return Value.literal("Array" if isinstance(data, Array) else "Object")
    if isinstance(data, Choice):
        return join(as_value(option) for option in data.options)
    if data.kind == "boolean":
        return Value.literal("true") | Value.literal("false")
    return UNKNOWN


def of_value(value: Value) -> Data:
    """The data for a text: constant when there is one possibility."""
    constant = value.constant
    return Known(constant) if constant is not None else Textual(value)


def text_of(value: str | float | bool | None) -> str:
    """GitHub's text of a constant."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else number_text(float(value))


def number_text(number: float) -> str:
    """A number as GitHub prints it: at most 15 digits after the point, no needless zeroes."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if abs(number) < 1e21:
        number = round(number, 15)
    if number == 0:
        return "0"
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent:
        return mantissa
    if -7 < int(exponent) < 0:
        return f"{number:.{len(mantissa.replace('.', '').lstrip('-')) - 1 - int(exponent)}f}"
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"


def as_number(data: Known | Array | Dictionary) -> float:
    """The number that *data* is coerced to in a comparison."""
    if not isinstance(data, Known):
        return math.nan
    if data.value is None:
        return 0.0
    return number_of(data.value) if isinstance(data.value, str) else float(data.value)


def is_primitive(data: Data) -> bool | None:
    """Whether *data* is a text, number, boolean or null; None when it could be either."""
    if isinstance(data, Anything | Choice):
        return None
    return not isinstance(data, Array | Dictionary)


def truth_of(data: Data) -> bool | None:
    """Whether *data* counts as true; None when that is not known."""
    if isinstance(data, Known):
        if isinstance(data.value, str):
            return bool(data.value)
        return bool(data.value) and not (isinstance(data.value, float) and math.isnan(data.value))
    if isinstance(data, Array | Dictionary):
        return True
    if isinstance(data, Textual):
        known = {
            any(isinstance(piece, str) for piece in text) or (None if text else False) for text in data.value.texts
        }
        return known.pop() if len(known) == 1 else None
    return None


def taints_of(data: Data) -> frozenset[Taint]:
    """Every label anywhere in *data*."""
    if isinstance(data, Textual):
        return data.value.taints
    if isinstance(data, Anything):
        return data.taints
    if isinstance(data, Array):
        return merged(taint for item in data.items for taint in taints_of(item))
    if isinstance(data, Dictionary):
        return merged(taint for item in data.values for taint in taints_of(item))
    if isinstance(data, Choice):
        return merged(taint for option in data.options for taint in taints_of(option))
    return frozenset()


def changed(data: Data, change: Callable[[Taint], Taint]) -> Data:
    """The same data with other labels."""
    if not taints_of(data):
        return data
    if isinstance(data, Textual):
        parsed = changed(data.parsed, change) if data.parsed is not None else None
        return Textual(data.value.changed(change), parsed)
    if isinstance(data, Anything):
        return Anything(merged(change(taint) for taint in data.taints))
    if isinstance(data, Array):
        return Array(tuple(changed(item, change) for item in data.items), data.filtered)
    if isinstance(data, Choice):
        return Choice(tuple(changed(option, change) for option in data.options))
    assert isinstance(data, Dictionary)
    entries = {key: (name, changed(item, change)) for key, (name, item) in data.entries.items()}
    return Dictionary(entries, changed(data.others, change))


def to_json(data: Data, indent: int = 0) -> Value:
    """The text that ``toJSON`` gives, with holes where parts are not known."""
    if isinstance(data, Known):
        number = isinstance(data.value, int | float) and not isinstance(data.value, bool)
        if number and not math.isfinite(data.value):  # type: ignore[arg-type]
            return Value.literal("null")
        return Value.literal(number_text(float(data.value)) if number else json.dumps(data.value, ensure_ascii=False))  # type: ignore[arg-type]
    if isinstance(data, Textual):
        return _quoted(data.value)
    if isinstance(data, Anything):
        return Value.of(data.taints)
    if isinstance(data, Unseen):
        return as_value(data)
    if isinstance(data, Choice):
        return join(to_json(option, indent) for option in data.options)
    pad = "  " * (indent + 1)
    if isinstance(data, Array):
        rows = [to_json(item, indent + 1) for item in data.items]
        opening, closing = "[", "]"
    else:
        rows = [
            Value.literal(f"{json.dumps(name, ensure_ascii=False)}: ") + to_json(item, indent + 1)
            for name, item in data.entries.values()
        ]
        if data.others != NULL:
            rows.append(Value.of(taints_of(data.others)))
        opening, closing = "{", "}"
    if not rows:
        return Value.literal(opening + closing)
    text = Value.literal(opening)
    for number_of_row, row in enumerate(rows):
        text += Value.literal(("," if number_of_row else "") + "\n" + pad) + row
    return text + Value.literal("\n" + "  " * indent + closing)


def _quoted(value: Value) -> Value:
    texts = [
        tuple(piece if isinstance(piece, Hole) else json.dumps(piece, ensure_ascii=False)[1:-1] for piece in text)
        for text in value.texts
    ]
    return Value.literal('"') + Value.any_of(texts) + Value.literal('"')


def of_plain(plain: object) -> Data:
    """The data for what ``json.loads`` or YAML gives."""
    if isinstance(plain, dict):
        return Dictionary.of({str(name): of_plain(inner) for name, inner in plain.items()})
    if isinstance(plain, list):
        return Array(tuple(of_plain(inner) for inner in plain))
    if isinstance(plain, int) and not isinstance(plain, bool):
        return Known(float(plain) if plain.bit_length() < 1024 else math.inf)
    assert plain is None or isinstance(plain, str | float | bool)
    return Known(plain)


_FIRST_STAND_IN = 0xE100


def from_json(value: Value) -> tuple[Data, ...]:
    """What ``fromJSON`` gives for each alternative of *value*; a hole inside a string of the JSON stays a hole.

    Raises ValueError for a constant that is not JSON.
    """
    return tuple(dict.fromkeys(_from_json_text(text) for text in value.texts))


def _from_json_text(text: Iterable[str | Hole]) -> Data:
    holes: list[Hole] = []
    bare, within = [], []
    for piece in text:
        if isinstance(piece, Hole):
            stand_in = chr(_FIRST_STAND_IN + len(holes))
            holes.append(piece)
            within.append(stand_in)
            bare.append(f'"{stand_in}"')
        else:
            within.append(piece)
            bare.append(piece)
    for candidate in ("".join(within), "".join(bare)):
        try:
            plain = json.loads(candidate, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            continue
        return _with_holes(of_plain(plain), holes, whole=candidate != "".join(within))
    if not holes:
        raise ValueError("fromJSON is given a text that is not JSON")
    return Anything(merged(taint for hole in holes for taint in hole.taints))


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _with_holes(data: Data, holes: list[Hole], *, whole: bool) -> Data:
    if not holes:
        return data
    if isinstance(data, Array):
        return Array(tuple(_with_holes(item, holes, whole=whole) for item in data.items))
    if isinstance(data, Dictionary):
        if any(_FIRST_STAND_IN <= ord(char) < _FIRST_STAND_IN + len(holes) for name in data.entries for char in name):
            return Anything(merged(taint for hole in holes for taint in hole.taints))
        return Dictionary(
            {key: (name, _with_holes(item, holes, whole=whole)) for key, (name, item) in data.entries.items()},
            data.others,
        )
    if not isinstance(data, Known) or not isinstance(data.value, str):
        return data
    value = EMPTY
    for char in data.value:
        index = ord(char) - _FIRST_STAND_IN
        value += Value(((holes[index],),)) if 0 <= index < len(holes) else Value.literal(char)
    if whole and len(data.value) == 1 and value.constant is None:
        return Anything(value.taints)  # an unquoted hole may be data of any kind
    return of_value(value)
