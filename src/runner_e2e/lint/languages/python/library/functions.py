"""Built-in functions, ``itertools``, ``functools``: what works on lists, functions and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.evaluator import Call, constant
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Class,
    Constant,
    Dictionary,
    Instance,
    Items,
    Object,
    Reference,
    Text,
    join_all,
    text,
)
from runner_e2e.lint.values import EMPTY, Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.lint.languages.python.evaluator import Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


# --- lists


def _make_items(kind: str) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        given = call.get(0)
        items = interpreter.items(given) if given is not None else Items()
        if kind == "tuple":
            return Items(items.items, items.rest, "tuple")
        return interpreter.new(Items(items.items, items.rest, "set" if kind == "set" else "list"))

    return model


def _unordered(interpreter: Evaluator, call: Call) -> Object:
    """``sorted`` and the like: the same items in another order."""
    items = interpreter.items(call.get(0) or NOTHING)
    if len(items.items) <= 1 and items.rest is None:
        return interpreter.new(items)
    known = [interpreter.known_keys(item) for item in items.items]
    if items.rest is None and all(each is not None and len(each) == 1 and isinstance(each[0], str) for each in known):
        ordered = sorted(str(each[0]) for each in known if each)
        if not call.keywords:
            return interpreter.new(Items(tuple(text(one) for one in ordered)))
    return interpreter.new(Items((), interpreter.element(items)))


def _reversed(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0) or NOTHING
    if isinstance(given, Text):
        return interpreter.new(Items((), interpreter.opaque((given,), Confidence.LOW)))
    items = interpreter.items(given)
    if items.rest is None:
        return interpreter.new(Items(tuple(reversed(items.items))))
    return interpreter.new(Items((), interpreter.element(items)))


def _enumerate(interpreter: Evaluator, call: Call) -> Object:
    items = interpreter.items(call.get(0) or NOTHING)
    pairs = tuple(Items((constant(index), item), None, "tuple") for index, item in enumerate(items.items))
    rest = Items((NOTHING, items.rest), None, "tuple") if items.rest is not None else None
    return interpreter.new(Items(pairs, rest))


def _zip(interpreter: Evaluator, call: Call) -> Object:
    lists = [interpreter.items(one) for one in call.arguments]
    if lists and all(one.rest is None for one in lists):
        rows = zip(*(one.items for one in lists), strict=False)
        return interpreter.new(Items(tuple(Items(tuple(row), None, "tuple") for row in rows)))
    row = Items(tuple(interpreter.element(one) for one in lists), None, "tuple")
    return interpreter.new(Items((), row))


def _map(interpreter: Evaluator, call: Call) -> Object:
    """``map(function, items)``, also that of executors and pools."""
    function = call.get(0) or NOTHING
    lists = [interpreter.items(one) for one in call.arguments[1:]]
    if len(lists) == 1 and lists[0].rest is None and len(lists[0].items) <= 16:
        results = [_applied(interpreter, function, (item,), call) for item in lists[0].items]
        return interpreter.new(Items(tuple(results)))
    result = _applied(interpreter, function, [interpreter.element(one) for one in lists], call)
    return interpreter.new(Items((), result))


def _applied(interpreter: Evaluator, function: Object, arguments: Sequence[Object], call: Call) -> Object:
    return interpreter.call(function, Call(node=call.node, arguments=tuple(arguments)))


def _map_method(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    return _map(interpreter, call)


def _submit(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    function = call.get(0) or NOTHING
    result = interpreter.call(function, call.behind(1))
    return interpreter.new(Instance("future", ((" result", result),)))


def _result(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = interpreter.content(receiver)
    found = content.get(" result") if isinstance(content, Instance) else None
    return found if found is not None else NOTHING


def _executor(interpreter: Evaluator, _call: Call) -> Object:
    return interpreter.new(Instance("executor"))


def _thread(interpreter: Evaluator, call: Call) -> Object:
    """``Thread(target=f, args=(…))`` and processes of ``multiprocessing``: their functions are run here."""
    target = call.get(1, "target")
    if target is not None and target != NONE:
        given = interpreter.items(call.keywords.get("args", Items()))
        named = interpreter.content(call.keywords.get("kwargs", NONE))
        keywords = {str(k): v for k, v in named.entries} if isinstance(named, Dictionary) else {}
        interpreter.call(target, Call(node=call.node, arguments=given.items, keywords=keywords, rest=given.rest))
    return interpreter.new(Instance("thread"))


def _filter(interpreter: Evaluator, call: Call) -> Object:
    items = interpreter.items(call.get(1) or NOTHING)
    function = call.get(0)
    kept: list[Object] = []
    unsure: list[Object] = []  # whether it is kept, and all that follow
    for item in items.items:
        truth = (
            interpreter.truth(item)
            if function in (None, NONE)
            else interpreter.truth(_applied(interpreter, function or NONE, (item,), call))
        )
        (unsure if truth is None or unsure else kept).extend([item] if truth is not False else [])
    rests = [*unsure, *([items.rest] if items.rest is not None else [])]
    return interpreter.new(Items(tuple(kept), join_all(rests) if rests else None))


def _next(interpreter: Evaluator, call: Call) -> Object:
    element = interpreter.element(interpreter.items(call.get(0) or NOTHING))
    default = call.get(1)
    return element if default is None else join_all((element, default))


def _chain(interpreter: Evaluator, call: Call) -> Object:
    total = Items()
    for one in call.arguments:
        total = interpreter.concatenated(total, interpreter.items(one))
    return interpreter.new(total)


def _chain_from(interpreter: Evaluator, call: Call) -> Object:
    total = Items()
    outer = interpreter.items(call.get(0) or NOTHING)
    for one in (*outer.items, *([outer.rest] if outer.rest is not None else [])):
        total = interpreter.concatenated(total, interpreter.items(one))
    return interpreter.new(total)


def _sum(interpreter: Evaluator, call: Call) -> Object:
    """``sum`` of numbers, or of lists when it begins with one."""
    start = call.get(1, "start")
    content = interpreter.content(start) if start is not None else None
    if not isinstance(content, Items):
        return interpreter.opaque(call.everything(), Confidence.LOW)
    items = interpreter.items(call.get(0) or NOTHING)
    for one in (*items.items, *([items.rest] if items.rest is not None else [])):
        content = interpreter.concatenated(content, interpreter.items(one))
    return interpreter.new(content)


def _any_item(interpreter: Evaluator, call: Call) -> Object:
    """``max``, ``min``, ``random.choice``: one of the items."""
    if len(call.arguments) > 1:
        return join_all(call.arguments)
    return interpreter.element(interpreter.items(call.get(0) or NOTHING))


def _length(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0) or NOTHING
    if isinstance(given, Text):
        known = given.value.constant
        return constant(len(known)) if known is not None else NOTHING
    content = interpreter.content(given)
    if isinstance(content, Items) and content.rest is None and content.kind != "set":
        return constant(len(content.items))
    if isinstance(content, Dictionary) and content.others is None:
        return constant(len(content.entries))
    return NOTHING


def _range(interpreter: Evaluator, call: Call) -> Object:
    numbers = [one.value if isinstance(one, Constant) else None for one in call.arguments]
    known = [one for one in numbers if isinstance(one, int)]
    if len(known) == len(numbers) and 1 <= len(known) <= 3 and 0 not in known[2:]:
        span = range(*known)
        if len(span) <= 16:
            return interpreter.new(Items(tuple(constant(number) for number in span)))
    return interpreter.new(Items((), NOTHING))


# --- objects


def _dict(interpreter: Evaluator, call: Call) -> Object:
    made = Dictionary()
    for one in call.arguments:
        made = interpreter.updated(made, one)
    entries = dict(made.entries)
    entries.update(call.keywords.items())
    return interpreter.new(Dictionary(tuple(entries.items()), made.others, made.keys))


def _default_dict(interpreter: Evaluator, call: Call) -> Object:
    factory = call.get(0)
    made = (
        interpreter.call(factory, Call(node=call.node)) if factory not in (None, NONE) and factory is not None else NONE
    )
    return interpreter.new(Dictionary((), made))


def _getattr(interpreter: Evaluator, call: Call) -> Object:
    owner, name = call.get(0) or NOTHING, call.get(1) or UNKNOWN_TEXT
    names = interpreter.known_keys(name)
    if names is None:
        return interpreter.opaque((owner,))
    found = [interpreter.attribute(owner, str(one), call.node) for one in names]
    default = call.get(2)
    return join_all([*found, *([default] if default is not None else [])])


def _setattr(interpreter: Evaluator, call: Call) -> Object:
    owner, names = call.get(0) or NOTHING, interpreter.known_keys(call.get(1) or UNKNOWN_TEXT)
    content = interpreter.content(owner)
    if isinstance(content, Instance) and names is not None and content.kind != "module":
        attributes = {**dict(content.attributes), **{str(name): call.get(2) or NOTHING for name in names}}
        interpreter.put(owner, Instance(content.kind, tuple(attributes.items())))
    return NONE


def _partial(interpreter: Evaluator, call: Call) -> Object:
    keywords: tuple[tuple[object, Object], ...] = tuple(call.keywords.items())
    attributes = (
        (" function", call.get(0) or NOTHING),
        (" arguments", Items(call.arguments[1:], None, "tuple")),
        (" keywords", interpreter.new(Dictionary(keywords))),
    )
    return interpreter.new(Instance("partial", attributes))


def _super(interpreter: Evaluator, _call: Call) -> Object:
    """``super()``: the object itself as its first base sees it."""
    frame = interpreter.frame
    content = interpreter.content(frame.receiver) if frame.receiver is not None else None
    if isinstance(content, Instance) and isinstance(content.kind, int) and isinstance(frame.receiver, Reference):
        owner = frame.method_of if frame.method_of is not None else content.kind
        cell = interpreter.memory.cell(owner)
        bases = cell.bases if isinstance(cell, Class) else ()
        return interpreter.new(Instance("super", ((" self", frame.receiver), *((" base", base) for base in bases[:1]))))
    return NOTHING


def _run_code(interpreter: Evaluator, call: Call) -> Object:
    """``exec`` and ``eval``."""
    given = call.get(0) or UNKNOWN_TEXT
    value = interpreter.value(given)
    name = "eval" if "eval" in interpreter_name(call) else "exec"
    if not any(isinstance(piece, str) for piece in value.pieces()):
        if value.taints:
            interpreter.give_up(call.node, f"{name} runs text that is not known")
        return interpreter.opaque(call.everything(), Confidence.LOW)
    span = interpreter.span(call.node_of(0))
    results = [
        interpreter.run_text(source, call.node, expression=name == "eval")
        for source in interpreter.process.source_of(value, *span)[:4]
    ]
    return join_all(results)


def interpreter_name(call: Call) -> str:
    """The name of the called function, as far as it is written."""
    function = getattr(call.node, "func", None)
    return str(getattr(function, "id", getattr(function, "attr", "")))


def _import_module(interpreter: Evaluator, call: Call) -> Object:
    names = interpreter.known_keys(call.get(0) or UNKNOWN_TEXT)
    if names is None:
        return NOTHING
    return join_all(interpreter.import_module(str(name)) for name in names[:4])


def _first(_interpreter: Evaluator, call: Call) -> Object:
    """A function that gives back its first argument: ``asyncio.run(main())``, ``cast``, ``copy``."""
    return call.get(0) or NOTHING


def _second(_interpreter: Evaluator, call: Call) -> Object:
    return call.get(1) or NOTHING


def _deep_copy(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0) or NOTHING
    content = interpreter.content(given)
    return interpreter.new(content) if isinstance(given, Reference) and content is not None else given


def _gather(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Items(call.arguments, call.rest))


def _number(interpreter: Evaluator, call: Call) -> Object:
    """``int`` and ``float``: digits of a text are not the text."""
    given = call.get(0)
    if given is None:
        return constant(0)
    if isinstance(given, Constant):
        return constant(int(given.value)) if isinstance(given.value, bool) else given
    known = interpreter.known_keys(given)
    if known is not None and len(known) == 1 and isinstance(known[0], str):
        try:
            return constant(int(known[0]))
        except ValueError:
            return NOTHING
    return interpreter.opaque((given,), Confidence.LOW)


def _boolean(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0)
    return interpreter.boolean(False if given is None else interpreter.truth(given))


def _fact(_interpreter: Evaluator, _call: Call) -> Object:
    """A number or a truth value: nothing of a text is in it."""
    return NOTHING


def _exception(interpreter: Evaluator, call: Call) -> Object:
    shown = EMPTY
    for one in call.arguments:
        shown = shown + interpreter.value(one)
    return interpreter.new(Instance("exception", ((" text", Text(shown)),)))


def _format_value(interpreter: Evaluator, call: Call) -> Object:
    return Text(interpreter.value(call.get(0) or NOTHING))


def _vars(interpreter: Evaluator, call: Call) -> Object:
    content = interpreter.content(call.get(0) or NOTHING)
    if isinstance(content, Instance):
        entries: tuple[tuple[object, Object], ...] = tuple(
            (name, value) for name, value in content.attributes if not name.startswith(" ")
        )
        return interpreter.new(Dictionary(entries))
    return interpreter.opaque(call.everything())


def _field(interpreter: Evaluator, call: Call) -> Object:
    """``dataclasses.field``: what makes the default of a field."""
    attributes = [
        (f" {name}", value) for name, value in call.keywords.items() if name in ("default", "default_factory")
    ]
    return interpreter.new(Instance("field", tuple(attributes)))


def _namespace(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("namespace", tuple(call.keywords.items())))


_EXCEPTIONS = (
    "Exception",
    "BaseException",
    "RuntimeError",
    "ValueError",
    "TypeError",
    "KeyError",
    "OSError",
    "SystemExit",
)
_FACTS = (
    "abs",
    "all",
    "any",
    "callable",
    "hash",
    "hasattr",
    "id",
    "isinstance",
    "issubclass",
    "ord",
    "pow",
    "round",
    "type",
)

FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "builtins.list": _make_items("list"),
    "builtins.tuple": _make_items("tuple"),
    "builtins.set": _make_items("set"),
    "builtins.frozenset": _make_items("set"),
    "builtins.iter": _make_items("list"),
    "collections.deque": _make_items("list"),
    "builtins.sorted": _unordered,
    "builtins.reversed": _reversed,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "itertools.zip_longest": _zip,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.next": _next,
    "builtins.sum": _sum,
    "builtins.max": _any_item,
    "builtins.min": _any_item,
    "random.choice": _any_item,
    "secrets.choice": _any_item,
    "builtins.len": _length,
    "builtins.range": _range,
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.ChainMap": _dict,
    "types.MappingProxyType": _dict,
    "collections.defaultdict": _default_dict,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "dataclasses.asdict": _vars,
    "dataclasses.field": _field,
    "types.SimpleNamespace": _namespace,
    "builtins.super": _super,
    "builtins.exec": _run_code,
    "builtins.eval": _run_code,
    "builtins.compile": _first,
    "builtins.__import__": _import_module,
    "importlib.import_module": _import_module,
    "builtins.int": _number,
    "builtins.float": _number,
    "builtins.bool": _boolean,
    "builtins.format": _format_value,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_from,
    "functools.partial": _partial,
    "asyncio.run": _first,
    "asyncio.wait_for": _first,
    "asyncio.create_task": _first,
    "asyncio.gather": _gather,
    "typing.cast": _second,
    "copy.copy": _deep_copy,
    "copy.deepcopy": _deep_copy,
    "threading.Thread": _thread,
    "multiprocessing.Process": _thread,
    "concurrent.futures.ThreadPoolExecutor": _executor,
    "concurrent.futures.ProcessPoolExecutor": _executor,
    "multiprocessing.Pool": _executor,
    "multiprocessing.pool.ThreadPool": _executor,
    "concurrent.futures.as_completed": _first,
    **{f"builtins.{name}": _exception for name in _EXCEPTIONS},
    **{f"builtins.{name}": _fact for name in _FACTS},
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "executor.submit": _submit,
    "executor.map": _map_method,
    "executor.imap": _map_method,
    "executor.starmap": _map_method,
    "executor.apply": _submit,
    "executor.apply_async": _submit,
    "future.result": _result,
    "future.get": _result,
}
