"""Formats and encodings: JSON, base64, digests, regular expressions, URLs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.documents import Json, Unknown, read_json
from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.languages.python.evaluator import Call, constant
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Dictionary,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Reference,
    Text,
    Union,
    join_all,
)
from runner_e2e.lint.values import UNKNOWN, Confidence, Hole, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


# --- JSON and its like


def _parsed(interpreter: Evaluator, value: Value) -> Object:
    """The data that a document holds, as far as its text is known."""
    found: list[Object] = []
    for one in value.texts:
        if len(one) == 1 and isinstance(one[0], Hole):
            found.append(Opaque(one[0].taints))
            continue
        try:
            found.append(_built(interpreter, read_json(one)))
        except ValueError:
            found.append(Opaque(Value((one,)).taints))
    return join_all(found)


def _built(interpreter: Evaluator, data: Json) -> Object:
    if isinstance(data, dict):
        entries: tuple[tuple[object, Object], ...] = tuple(
            (key, _built(interpreter, item)) for key, item in data.items() if key is not None
        )
        others = _built(interpreter, data[None]) if None in data else None
        return interpreter.new(Dictionary(entries, others))
    if isinstance(data, list):
        return interpreter.new(Items(tuple(_built(interpreter, item) for item in data)))
    if isinstance(data, Value):
        return Text(data)
    return Opaque(data.taints) if isinstance(data, Unknown) else constant(data)


def _load(interpreter: Evaluator, call: Call) -> Object:
    """``json.load(file)``."""
    given = call.get(0, "fp") or NOTHING
    return _parsed(interpreter, _content(interpreter, given, call))


def _content(interpreter: Evaluator, given: Object, call: Call) -> Value:
    if given == Named("sys.stdin"):
        return interpreter.process.read_input()
    if isinstance(given, Reference):
        method = interpreter.attribute(given, "read", call.node)
        return interpreter.value(interpreter.call(method, Call(node=call.node)))
    return interpreter.value(given)


def _loads(interpreter: Evaluator, call: Call) -> Object:
    return _parsed(interpreter, interpreter.value(call.get(0, "s") or NOTHING))


def _dumps(interpreter: Evaluator, call: Call) -> Object:
    return Text(_document(interpreter, call.get(0, "obj") or NOTHING, 0))


def _document(interpreter: Evaluator, one: Object, depth: int) -> Value:
    """The JSON text of an object, as far as it is known."""
    content = interpreter.content(one)
    if isinstance(one, Text):
        known = one.value.constant
        return (
            Value.literal(json.dumps(known))
            if known is not None
            else Value.literal('"') + one.value + Value.literal('"')
        )
    if depth < 4 and isinstance(content, Dictionary) and content.others is None and len(content.entries) <= 16:
        total = Value.literal("{")
        for index, (key, item) in enumerate(content.entries):
            total = total + Value.literal((", " if index else "") + json.dumps(str(key)) + ": ")
            total = total + _document(interpreter, item, depth + 1)
        return total + Value.literal("}")
    if depth < 4 and isinstance(content, Items) and content.rest is None and len(content.items) <= 16:
        items = (_document(interpreter, item, depth + 1) for item in content.items)
        return Value.literal("[") + joined(items, Value.literal(", ")) + Value.literal("]")
    taints = interpreter.taints(one)
    return Value.of(taints) if taints else UNKNOWN


def _dump(interpreter: Evaluator, call: Call) -> Object:
    """``json.dump(data, file)``."""
    target = call.get(1, "fp") or NOTHING
    method = interpreter.attribute(target, "write", call.node)
    return interpreter.call(method, Call(node=call.node, arguments=(_dumps(interpreter, call),)))


# --- encodings and digests


def _encoded(interpreter: Evaluator, call: Call) -> Object:
    """An encoding: the value can be read from it by someone who tries."""
    value = interpreter.value(call.get(0) or NOTHING)
    return Text(value.opaque().weakened(Confidence.LOW) if value.taints else UNKNOWN, "bytes")


def _digest(interpreter: Evaluator, _call: Call) -> Object:
    return interpreter.new(Instance("digest"))


def _nothing(_interpreter: Evaluator, _call: Call) -> Object:
    return NOTHING


def _unknown_text(_interpreter: Evaluator, _call: Call) -> Object:
    return UNKNOWN_TEXT


def _digest_text(_interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return UNKNOWN_TEXT


def _digest_update(_interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return NONE


# --- regular expressions


def _match(interpreter: Evaluator, subject: Value) -> Object:
    """What a search in *subject* finds, or None."""
    found = Text(subject.opaque() if subject.taints else UNKNOWN)
    return Union((interpreter.new(Instance("match", ((" subject", found),))), NONE))


def _search(interpreter: Evaluator, call: Call) -> Object:
    return _match(interpreter, interpreter.value(call.get(1, "string") or NOTHING))


def _find_all(interpreter: Evaluator, call: Call) -> Object:
    subject = interpreter.value(call.get(1, "string") or NOTHING)
    return interpreter.new(Items((), Text(subject.opaque() if subject.taints else UNKNOWN)))


def _find_matches(interpreter: Evaluator, call: Call) -> Object:
    found = _search(interpreter, call)
    return interpreter.new(Items((), interpreter.options(found)[0]))


def _substituted(interpreter: Evaluator, call: Call) -> Object:
    pattern = interpreter.value(call.get(0, "pattern") or NOTHING)
    replacement, subject = call.get(1, "repl") or NOTHING, interpreter.value(call.get(2, "string") or NOTHING)
    new = interpreter.value(replacement)
    if pattern.taints and not new.taints:  # it takes the value out of the text
        kept = frozenset(taint for taint in subject.taints if taint.label not in {one.label for one in pattern.taints})
        return Text(Value.of(kept) if kept else UNKNOWN)
    merged = Value.of((*subject.taints, *new.taints))
    return Text(merged if merged.taints else UNKNOWN)


def _compile(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("pattern", ((" pattern", call.get(0, "pattern") or NOTHING),)))


def _on_pattern(model: Callable[[Evaluator, Call], Object]) -> Callable[[Evaluator, Object, Call], Object]:
    """A method of a compiled pattern: the function with the pattern before the other arguments."""

    def method(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        content = interpreter.content(receiver)
        pattern = content.get(" pattern") if isinstance(content, Instance) else None
        whole = Call(
            node=call.node,
            arguments=(pattern or NOTHING, *call.arguments),
            keywords=call.keywords,
            rest=call.rest,
            nodes=(None, *call.nodes),
            keyword_nodes=call.keyword_nodes,
        )
        return model(interpreter, whole)

    return method


def _group(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    subject = _subject(interpreter, receiver)
    if len(call.arguments) > 1:
        return Items((subject,) * len(call.arguments), None, "tuple")
    return subject


def _subject(interpreter: Evaluator, receiver: Object) -> Object:
    content = interpreter.content(receiver)
    found = content.get(" subject") if isinstance(content, Instance) else None
    return found if found is not None else UNKNOWN_TEXT


def _groups(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return Items((), _subject(interpreter, receiver), "tuple")


def _group_dictionary(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return interpreter.new(Dictionary((), _subject(interpreter, receiver)))


def _re_split(interpreter: Evaluator, call: Call) -> Object:
    subject = interpreter.value(call.get(1, "string") or NOTHING)
    return interpreter.new(Items((), Text(subject.opaque() if subject.taints else UNKNOWN)))


# --- others


def _identifier(interpreter: Evaluator, _call: Call) -> Object:
    """A random identifier: another one each time, of nothing that is known."""
    return Text(Value(((Hole(frozenset(), interpreter.process.identity("random")),),)))


def _joined(interpreter: Evaluator, call: Call) -> Object:
    return Text(interpreter.value(interpreter.opaque(call.everything())))


def _csv_writer(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("csv", ((" file", call.get(0) or NOTHING),)))


def _write_row(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = interpreter.content(receiver)
    target = content.get(" file") if isinstance(content, Instance) else None
    if target is None:
        return NONE
    row = Text(interpreter.value(join_all([interpreter.opaque(call.everything())])))
    return interpreter.call(interpreter.attribute(target, "write", call.node), Call(node=call.node, arguments=(row,)))


_HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256", "sha3_512", "new")
_CODES = ("b64encode", "urlsafe_b64encode", "standard_b64encode", "b32encode", "b16encode", "b85encode", "a85encode")
_DECODES = tuple(name.replace("encode", "decode") for name in _CODES)

FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    **{f"{module}.load": _load for module in ("json", "yaml", "tomllib", "toml", "pickle", "ujson")},
    **{f"{module}.loads": _loads for module in ("json", "tomllib", "toml", "pickle", "ujson", "orjson")},
    "yaml.safe_load": _load,
    "ast.literal_eval": _loads,
    **{f"{module}.dumps": _dumps for module in ("json", "toml", "ujson", "orjson")},
    "yaml.dump": _dumps,
    "yaml.safe_dump": _dumps,
    "json.dump": _dump,
    **{f"base64.{name}": _encoded for name in (*_CODES, *_DECODES, "encodebytes", "decodebytes")},
    **{f"binascii.{name}": _encoded for name in ("hexlify", "b2a_hex", "b2a_base64", "unhexlify", "a2b_base64")},
    "codecs.encode": _encoded,
    "zlib.compress": _encoded,
    "gzip.compress": _encoded,
    **{f"hashlib.{name}": _digest for name in _HASHES},
    "hmac.new": _digest,
    "hmac.digest": _unknown_text,
    "hashlib.pbkdf2_hmac": _unknown_text,
    "hashlib.scrypt": _unknown_text,
    "zlib.crc32": _nothing,
    "zlib.adler32": _nothing,
    "uuid.uuid3": _unknown_text,
    "uuid.uuid5": _unknown_text,
    "uuid.uuid4": _identifier,
    "uuid.uuid1": _identifier,
    "secrets.token_hex": _identifier,
    "secrets.token_urlsafe": _identifier,
    "re.search": _search,
    "re.match": _search,
    "re.fullmatch": _search,
    "re.findall": _find_all,
    "re.finditer": _find_matches,
    "re.sub": _substituted,
    "re.split": _re_split,
    "re.compile": _compile,
    "re.escape": lambda interpreter, call: Text(interpreter.value(call.get(0) or NOTHING)),
    "urllib.parse.urlencode": _joined,
    "urllib.parse.urljoin": _joined,
    "csv.writer": _csv_writer,
    "csv.DictWriter": _csv_writer,
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "digest.hexdigest": _digest_text,
    "digest.digest": _digest_text,
    "digest.update": _digest_update,
    "pattern.search": _on_pattern(_search),
    "pattern.match": _on_pattern(_search),
    "pattern.fullmatch": _on_pattern(_search),
    "pattern.findall": _on_pattern(_find_all),
    "pattern.finditer": _on_pattern(_find_matches),
    "pattern.sub": _on_pattern(_substituted),
    "pattern.split": _on_pattern(_re_split),
    "match.group": _group,
    "match.groups": _groups,
    "match.groupdict": _group_dictionary,
    "match.__getitem__": _group,
    "csv.writerow": _write_row,
    "csv.writerows": _write_row,
    "bytes.hex": lambda interpreter, receiver, _call: _encoded(
        interpreter, Call(node=_call.node, arguments=(receiver,))
    ),
}
