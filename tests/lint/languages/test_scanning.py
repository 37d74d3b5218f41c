"""Perl and ruby: what is read of them beside leaks, and any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.languages.test_execution import HERE, followed, leaking_lines
from tests.lint.shell.execution import Snippet, read_snippets

from runner_e2e.lint.values import Confidence, Value

RUBY = read_snippets(HERE / "snippets" / "ruby.txt", "ruby")
PIECES = st.sampled_from(
    [
        *(
            'system("tool", ',
            "$ENV{S}",
            'ENV["S"]',
            "$x",
            "x",
            " = ",
            ";",
            "\n",
            "`tool #{x}`",
            "qx(tool $x)",
            "%x(",
            ")",
        ),
        *(
            "<<END\n",
            "END\n",
            "'",
            '"',
            "{",
            "}",
            "[",
            "]",
            "=begin\n",
            "=cut\n",
            "#",
            "print ",
            "puts ",
            "open(P, '|x')",
        ),
        *(
            "s/a/b/",
            "qw(a b)",
            "sub f { my ($a) = @_; ",
            "def f(a)\n",
            "end\n",
            "#{",
            "@list",
            "->",
            "=>",
            ".",
            ",",
            "\\",
        ),
    ]
)


def labels(value: Value) -> set[str]:
    return {taint.label.name for taint in value.taints}


@pytest.mark.parametrize("snippet", RUBY, ids=lambda snippet: snippet.name)
def test_ruby(snippet: Snippet) -> None:
    found = leaking_lines("ruby", snippet.text)
    assert {line for lines in found for line in lines if line in snippet.lines} == snippet.lines
    assert all(snippet.lines.intersection(lines) for lines in found)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "perl",
            'open(my $f, ">>", $ENV{GITHUB_OUTPUT}) or die;\nprint $f "id=$ENV{S}\\n";\nprint {$f} "mode=fast\\n";',
        ),
        ("perl", 'open F, ">>$ENV{GITHUB_OUTPUT}";\nprint F "id=$ENV{S}\\nmode=fast\\n";\nclose F;'),
        ("perl", 'system(\'echo "id=$S" >> "$GITHUB_OUTPUT"; echo mode=fast >> "$GITHUB_OUTPUT"\');'),
        ("ruby", 'File.open(ENV["GITHUB_OUTPUT"], "a") { |f| f.puts "id=#{ENV["S"]}\\nmode=fast" }'),
        ("ruby", 'File.write(ENV["GITHUB_OUTPUT"], "id=#{ENV["S"]}\\nmode=fast\\n")'),
    ],
)
def test_outputs(language: str, text: str) -> None:
    outputs = followed(language, text).outputs
    assert labels(outputs["id"]) == {"S"}
    assert outputs["mode"].constant == "fast"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("perl", 'print "case $ENV{S}\\n";'),
        ("ruby", 'puts "case #{ENV["S"]}"'),
        ("perl", "warn $ENV{S};"),
        ("ruby", 'warn ENV["S"]'),
    ],
)
def test_prints(language: str, text: str) -> None:
    assert [printed.target for printed in followed(language, text).prints] == ["log"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("perl", 'sub go { my ($x) = @_; system("tool", $x); }\ngo($ENV{S});'),
        ("perl", 'system("tool", change($ENV{S}));'),
        ("ruby", 'def go(x)\n  system("tool", x)\nend\ngo(ENV["S"])'),
    ],
)
def test_what_goes_through_a_function_is_only_possible(language: str, text: str) -> None:
    (leak,) = followed(language, text).leaks
    assert {taint.confidence for taint in leak.taints} == {Confidence.LOW}


@given(st.sampled_from(["perl", "ruby"]), st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_pieces_are_survived(language: str, text: str) -> None:
    followed(language, text)


@given(st.sampled_from(["perl", "ruby"]), st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_is_survived(language: str, text: str) -> None:
    followed(language, text)
