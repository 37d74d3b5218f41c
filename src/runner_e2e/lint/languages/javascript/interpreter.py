"""The interpreter as a whole: modules, the program, and what ``actions/github-script`` gives to one."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript import testing
from runner_e2e.lint.languages.javascript.builtins import builtin, function, object_of
from runner_e2e.lint.languages.javascript.data import parsed, shown, stringified
from runner_e2e.lint.languages.javascript.machine import Call, Frame, Passed, Scope
from runner_e2e.lint.languages.javascript.modules import GLOBAL, HARMLESS, MODULES
from runner_e2e.lint.languages.javascript.octokit import client
from runner_e2e.lint.languages.javascript.runtimes import GLOBALS
from runner_e2e.lint.languages.javascript.starting import run_template, zx_dollar
from runner_e2e.lint.languages.javascript.statements import Statements
from runner_e2e.lint.languages.javascript.syntax import read
from runner_e2e.lint.languages.javascript.toolkit import context_of, set_output
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    UNDEFINED,
    Cell,
    Js,
    Thing,
    literal,
    of_text,
    of_thing,
    text_of,
)
from runner_e2e.lint.tree import TooLargeError
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from runner_e2e.lint.source import Source
    from runner_e2e.lint.tree import Node

__all__ = ["Interpreter"]

_FILES = (".js", ".cjs", ".mjs", ".json", ".ts", ".tsx", ".jsx")
_INDEXES = tuple(f"/index{ending}" for ending in _FILES if ending != ".json")
_MADE = ((".js", ".ts"), (".js", ".tsx"), (".jsx", ".tsx"), (".mjs", ".mts"), (".cjs", ".cts"))
_MAX_MODULES = 100
_ZX = re.compile(r"#!.*\bzx\b")


class Interpreter(Statements):
    """Runs one program in one process."""

    def builtin(self, name: str) -> Js | None:
        """See :meth:`Machine.builtin`: made when it is first named."""
        made = GLOBALS.get(name)
        found = made() if made is not None else builtin(self, name)
        if found is None and self.process.tests is not None and name in testing.GLOBALS:
            found = testing.given(name)
        if found is not None:
            self.globals.cells[name] = Cell(found)
        return found

    # --- programs

    def parse(self, source: Source, path: str = "") -> Node | None:
        """The syntax of *source*, without types; None when it is too large, which is then reported, as what is no
        JavaScript. *path*: the file it is run as.
        """
        try:
            root, wrong = read(source.text, path)
        except TooLargeError:
            reason = "a JavaScript program of this size, or that takes so long to read, is not followed"
            self.process.give_up(0, min(1, len(source.text)), reason)
            return None
        if wrong:
            with self.process.within(source):
                self.process.give_up(wrong[0].start, wrong[0].end, "this is no JavaScript, and is not followed")
        return root

    def run_program(self) -> None:
        """Runs the source of the process as its main module."""
        root = self.parse(self.source, self.path)
        if root is None:
            return
        if _ZX.match(self.source.text):
            self.globals.cells["$"] = Cell(zx_dollar())
        self._run_module(root, self.path)
        if "p" in self.process.flags and self.live:  # `node --print`
            text = shown(self.completion) + Value.literal("\n")
            self.process.print(text, 0, len(self.source.text))
        self.finish()

    def finish(self) -> None:
        """Goes on, outside, from all the places where the process may have ended."""
        if self.live:
            self.process.merge(self.ends)
        elif self.ends:
            self.process.restore(self.ends[0])
            self.process.merge(self.ends[1:])

    def run_text(self) -> Js:
        """Runs the current source in the current scope (``eval``); the value of its last expression."""
        root = self.parse(self.source)
        if root is None:
            return ANY
        self.completion = UNDEFINED
        self._statements(root.children)
        return self.completion

    def _run_module(self, root: Node, path: str) -> Js:
        """Runs the statements of a module in a scope of its own; what it exports."""
        exports, module = Thing(), Thing()
        module.put("exports", of_thing(exports))
        saved = self.scope, self.path, self.loops
        self.scope, self.path, self.loops = Scope(self.globals, function=True), path, []
        require = Thing("function", native=self.import_module)
        require.put("resolve", function(lambda call: of_text(call.text(0))))
        require.put("main", of_thing(module))
        self.scope.cells |= {
            "exports": Cell(of_thing(exports)),
            "module": Cell(of_thing(module)),
            "require": Cell(of_thing(require)),
            "__filename": Cell(literal(path)),
            "__dirname": Cell(literal(posixpath.dirname(path))),
        }
        frame = Frame(len(self.journals), of_thing(exports))
        before = self.process.save()
        self.journals.append({})
        self.frames.append(frame)
        self.exporting.append(exports)
        self._statements(root.children)
        self.exporting.pop()
        self.frames.pop()
        self._returned(frame, UNDEFINED, before)
        self.scope, self.path, self.loops = saved
        found = module.cells["exports"].value
        return found if found is not None else UNDEFINED

    # --- modules

    def import_module(self, call: Call) -> Js:
        """See :meth:`Objects.import_module`."""
        return self.module(call.text(0))

    def module(self, specifier: Value) -> Js:
        """See :meth:`ModuleStatements.module`."""
        name = specifier.constant
        if name is None:
            return of_thing(Thing("unknown", data="a module that is not known"))
        name = name.removeprefix("node:")
        if not name.startswith((".", "/")):
            return self._package(name)
        for path in self._candidates(name):
            found = self.modules.get(path)
            if found is not None:
                return found
            source = self.process.program_at(path)
            if source is not None:
                return self._load(path, source)
        return of_thing(Thing("unknown", data=name))

    def _package(self, name: str) -> Js:
        found = self.modules.get(name)
        if found is None and name in GLOBAL:
            found = self.modules[name] = self._of_globals(name)
        if found is None:
            made = MODULES.get(name)
            known = name in HARMLESS or name.startswith("@octokit/")
            found = made() if made is not None else of_thing(Thing("harmless" if known else "unknown", data=name))
            self.modules[name] = found
        return found

    def _of_globals(self, name: str) -> Js:
        """A module that exports what is built in: ``node:process`` is ``process``."""
        names = GLOBAL[name]
        if names is None:
            return self._global(name)
        return object_of({each: self._global(each) for each in names})

    def _global(self, name: str) -> Js:
        cell = self.globals.cells.get(name)
        found = cell.value if cell is not None else self.builtin(name)
        return found if found is not None else UNDEFINED

    def _candidates(self, name: str) -> list[str]:
        directory = posixpath.dirname(self.path) if self.path and not self.wrapped_require else ""
        directory = directory or self.process.directory.constant or "/github/workspace"
        whole = posixpath.normpath(posixpath.join(directory, name))
        # TypeScript names the files that it would make.
        typed = [f"{whole[: -len(made)]}{own}" for made, own in _MADE if whole.endswith(made)]
        return [*(whole + ending for ending in ("", *_FILES, *_INDEXES)), *typed]

    def _load(self, path: str, source: Source) -> Js:
        if len(self.modules) > _MAX_MODULES:
            return of_thing(Thing("unknown", data=path))
        if path.endswith(".json"):
            content = self.process.read_file(Value.literal(path))
            found = parsed(content if content.taints else Value.literal(source.text))
            self.modules[path] = found
            return found
        self.modules[path] = of_thing(Thing())  # modules may require one another in a circle
        with self.process.within(source):
            root = self.parse(source, path)
            found = self._run_module(root, path) if root is not None else of_thing(Thing("unknown", data=path))
        self.modules[path] = found
        return found

    # --- tagged templates

    def tagged(self, callee: Js, template: Node, call: Call) -> Js:
        """See :meth:`Objects.tagged`."""
        thing = callee.thing
        if thing is not None and isinstance(thing.data, str) and thing.data.startswith("$") and thing.is_function:
            return run_template(thing.data, template, call)
        if call.name == "String.raw":
            return self.evaluate(template)
        texts: list[Js] = []
        values: list[Passed] = []
        offset = template.start + 1
        for child in template.children:
            if child.kind == "template_substitution":
                texts.append(of_text(self.inserted(self.source.text[offset : child.start])))
                value = self.evaluate(child.children[0]) if child.children else UNDEFINED
                values.append(Passed(value, child.start, child.end))
                offset = child.end
        texts.append(of_text(self.inserted(self.source.text[offset : template.end - 1])))
        first = Passed(self.array(texts), template.start, template.end)
        return self.call_value(callee, replace(call, arguments=(first, *values)))

    # --- actions/github-script

    def run_github_script(self) -> None:
        """Runs the source as the body of the function that ``actions/github-script`` makes of it."""
        self.wrapped_require = True
        given = {
            **{name: of_thing(Thing("harmless", data=name)) for name in ("glob", "io")},
            **{name: of_thing(client(name)) for name in ("github", "octokit")},
            "getOctokit": of_thing(Thing("function", native=lambda _call: of_thing(client()))),
            "context": context_of(self),
            "core": self._package("@actions/core"),
            "exec": self._package("@actions/exec"),
            "require": of_thing(Thing("function", native=self.import_module)),
            "__original_require__": of_thing(Thing("function", native=self.import_module)),
        }
        self.globals.cells |= {name: Cell(value) for name, value in given.items()}
        root = self.parse(self.source)
        if root is None:
            return
        frame = Frame(len(self.journals), UNDEFINED)
        before = self.process.save()
        self.journals.append({})
        self.frames.append(frame)
        self.scope = Scope(self.globals, function=True)
        self._statements(root.children)
        self.frames.pop()
        result = self._returned(frame, UNDEFINED, before)
        if self.live and result != UNDEFINED:
            call = Call(self, UNDEFINED, (), 0, len(self.source.text))
            encoding = self.process.variable("INPUT_RESULT-ENCODING")
            as_text = encoding is not None and encoding.constant == "string"
            text = text_of(result) if as_text else stringified(result)
            set_output(call, Value.literal("result"), of_text(text))
        self.finish()
