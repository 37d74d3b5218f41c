"""From what bash counts to the line of the workflow: the parts that need no execution."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.truth.lines import Note, block_lines, command_lines, run_blocks


def note(line: int, *argv: str) -> Note:
    return Note(pid=1, source="step.sh", line=line, argv=argv, language="bash")


@pytest.mark.parametrize(
    ("script", "line", "argv", "expected"),
    [
        ("tool x\n", 1, ("tool", "x"), (1, 1)),
        ("tool \\\n  --id \\\n  x\n", 2, ("tool", "--id", "x"), (1, 3)),
        ("x=$(/bin/echo y |\n  tr a b)\n", 2, ("/bin/echo", "y"), (1, 1)),
        ("x=$(/bin/echo y |\n  tr a b)\n", 2, ("tr", "a", "b"), (2, 2)),
        ("cat <<END\n$(/bin/echo x)\nEND\n", 1, ("/bin/echo", "x"), (2, 2)),
        ('echo "größe ✓"; tool x\n', 1, ("tool", "x"), (1, 1)),
        ("run=tool\n$run x\n", 2, ("tool", "x"), (2, 2)),
        ('t="tool x"\neval "$t"\n', 2, ("tool", "x"), (2, 2)),
        ("for x in a; do\n  tool x\n  tool y\ndone\n", 3, ("tool", "y"), (3, 3)),
        ("exec -a name tool\n", 1, ("tool",), (1, 1)),
        ("echo x\n", 1, ("tool", "x"), None),
        ("echo x\n", 9, ("echo", "x"), None),
    ],
)
def test_the_command_at_a_line(script: str, line: int, argv: tuple[str, ...], expected: tuple[int, int] | None) -> None:
    assert command_lines(script, note(line, *argv)) == expected


WORKFLOW = dedent(
    """\
    jobs:
      one:
        steps:
          - run: tool one  # a comment of YAML
          - name: two
            run: |
              echo two

              tool "${{ toJSON(inputs) }}"
              tool ${{ format('{{0}} {0}', github.job) }} end
          - run: &three |2-
                indented
              less
            shell: bash
          - run: >-
              folded
              text
    """
)


def test_the_blocks_of_a_workflow() -> None:
    assert [(start, lines[0]) for start, lines in run_blocks(WORKFLOW)] == [
        (4, "tool one"),
        (7, "echo two"),
        (12, "  indented"),
    ]


def test_a_value_of_several_lines_stands_on_the_line_of_its_expression() -> None:
    script = '\necho two\n\ntool "{\n  "id": "x"\n}"\ntool {0} job end\n\n'
    found = block_lines("case.yml", WORKFLOW, script)
    assert found is not None
    file, lines = found
    assert file == "case.yml"
    assert lines == {2: 7, 3: 8, 4: 9, 5: 9, 6: 9, 7: 10}


def test_a_script_that_is_not_in_the_file() -> None:
    assert block_lines("case.yml", WORKFLOW, "tool three\n") is None
