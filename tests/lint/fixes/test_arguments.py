"""Commands written in another way: what becomes of each, whether it is safe, and which stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.fixes.steps import repaired, script_and_environment, workflow

from runner_e2e.lint.finding import Finding
from runner_e2e.lint.fixes.arguments import repair
from runner_e2e.lint.fixes.unchanged import applied
from runner_e2e.lint.repository import Document, Repository
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path

# Script, in which the finding is about the word that starts at the first «, -> what it becomes, or None.
SAFE = {
    '/bin/echo «"$S"': 'echo "$S"',
    "/usr/bin/printf '%s' «\"$S\"": "printf '%s' \"$S\"",
    '/usr/bin/test -n «"$S"': 'test -n "$S"',
    'x=$(/usr/bin/[ -n «"$S" ])': 'x=$([ -n "$S" ])',
    'env «X="$S" tool --go': 'X="$S" tool --go',
    '/usr/bin/env A=1 «X="$S" ./tool': 'A=1 X="$S" ./tool',
    'env \\\n  «X="$S" \\\n  tool': 'X="$S" \\\n  tool',
    'env «X="$S" echo hi': 'X="$S" echo hi',
    'docker run -e «K="$S" image': 'K="$S" docker run -e K image',
    'docker run --rm -it --env «"K=$S" -v "$PWD:/w" i ls': 'K="$S" docker run --rm -it --env K -v "$PWD:/w" i ls',
    'podman create «--env=K="$S" image': 'K="$S" podman create --env=K image',
    'A=1 docker container exec -e «K="a-$S" box tool': 'K="a-$S" A=1 docker container exec -e K box tool',
    'if docker run -e «K="$S" image; then :; fi': 'if K="$S" docker run -e K image; then :; fi',
    'docker login -u me -p «"$S" ghcr.io': "printf '%s' \"$S\" | docker login -u me --password-stdin ghcr.io",
    '! docker login «--password="$S" -u me': "! printf '%s' \"$S\" | docker login --password-stdin -u me",
    'docker login -u me -p «"$S" | tee log': "printf '%s' \"$S\" | docker login -u me --password-stdin | tee log",
    'curl -sS -H «"Authorization: Bearer $S" "$URL"': (
        'curl -sS -H @<(printf \'%s\\n\' "Authorization: Bearer $S") "$URL"'
    ),
    'env ID=«"$ID" B="$C" tool'.replace("ID=«", "«ID="): 'ID="$ID" B="$C" tool',
    'docker build --build-arg «K="$S" -t x .': 'K="$S" docker build --build-arg K -t x .',
    'docker buildx build . «--build-arg=K="$S"': 'K="$S" docker buildx build . --build-arg=K',
    'git -c a.b=c -c «"http.extraheader=AUTH $S" fetch': (
        'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraheader GIT_CONFIG_VALUE_0="AUTH $S" git -c a.b=c fetch'
    ),
    'curl --data-raw «"$S" x': "curl --data-binary @<(printf '%s' \"$S\") x",
    'curl -d «"a=$S&b" x': "curl --data-binary @<(printf '%s' \"a=$S&b\") x",
    "jq --arg id «\"$S\" '$id' f": "jq --rawfile id <(printf '%s' \"$S\") '$id' f",
    'gh workflow run w -f «id="$S"': "gh workflow run w -F id=@<(printf '%s' \"$S\")",
    'gh api x --raw-field «"id=$S"': "gh api x -F id=@<(printf '%s' \"$S\")",
    'grep -qF «"id: $S" f': "grep -qF -f <(printf '%s\\n' \"id: $S\") f",
    'grep -e «"$S" f': "grep -f <(printf '%s\\n' \"$S\") f",
    'gh secret set NAME --body «"$S"': "printf '%s' \"$S\" | gh secret set NAME",
    'gh secret set NAME -b «"$S" -R o/r': "printf '%s' \"$S\" | gh secret set NAME -R o/r",
}

UNSAFE = {
    'name=$(basename «"$S")': "name=${S##*/}",
    'tool "$(basename «"${S}").x"': 'tool "${S##*/}.x"',
    'curl -d «"$S" x': "curl --data-binary @<(printf '%s' \"$S\") x",
    'grep «"$S" f': "grep -f <(printf '%s\\n' \"$S\") f",
    "gh secret set NAME --body=«$S".replace("--body=«", "«--body="): "printf '%s' \"$S\" | gh secret set NAME",
    "docker login -u me -p «$S": "printf '%s' \"$S\" | docker login -u me --password-stdin",
    "docker login -u x «--password=${S}": "printf '%s' \"${S}\" | docker login -u x --password-stdin",
    "env «X=$S tool": "X=$S tool",
    "docker run -e «K=$S image": "K=$S docker run -e K image",
}

LEFT = (
    'tool «"$S"',
    '/bin/echo --version «"$S"',
    'echo() { tool "$1"; }; /bin/echo «"$S"',
    'alias echo=tool; /bin/echo «"$S"',
    '/opt/echo «"$S"',
    'env «A="$S" B="$A" tool',
    'env -i «X="$S" tool',
    'env «X="$S"',
    'env «X="$S" export y',
    'env «X="$S" time tool',
    'env «X="$S" "$tool"',
    'env «PATH="$S" tool',
    'env «X="$S" --version',
    'tool() { :; }; env «X="$S" tool',
    'sudo docker run -e «K="$S" image',
    'docker run image sh -e «K="$S"',
    'docker run --unknown x -e «K="$S" image',
    'docker run -e «K="$S" -e K=other image',
    'K=1 docker run -e «K="$S" image',
    'docker run -e «PATH="$S" image',
    'docker compose build --build-arg «K="$S"',
    'basename «"$S"',
    'x=$(basename «"$S" .txt)',
    'x=$(basename «"a/$S")',
    'git -c «a.b="$S"',
    'GIT_CONFIG_COUNT=1 git -c «a.b="$S" fetch',
    'git fetch -c «a.b="$S" x',
    'gh issue create -f «a="$S"',
    'grep -A «"$S" x f',
    'jq --argjson id «"$S" . f',
    'curl -d «"@$S" x',
    'curl -H «"a: \\`b\\` $S',
    'cat x | docker login -u me -p «"$S"',
    'docker login -u me -p «"$S" < /dev/null',
    'docker login -p «"$S" x',
    'readonly X; env «X="$S" tool',
    "docker login -p «$S-x",
    'curl -u «"me:$S" x',
    "curl -H «$S x",
)


def fixed(script: str, folder: Path, **options: str) -> tuple[str, object, bool] | None:
    index = script.index("«")
    text = script.replace("«", "")
    found = repaired(repair, workflow(text, **options), text[index:], folder)
    return (*script_and_environment(found[0]), found[1].safe) if found is not None else None


@pytest.mark.parametrize("script", SAFE)
def test_the_command_does_the_same(script: str, tmp_path: Path) -> None:
    assert fixed(script, tmp_path) == (SAFE[script], None, True)


@pytest.mark.parametrize("script", UNSAFE)
def test_the_command_may_do_something_else(script: str, tmp_path: Path) -> None:
    assert fixed(script, tmp_path) == (UNSAFE[script], None, False)


@pytest.mark.parametrize("script", LEFT)
def test_other_commands_are_left_alone(script: str, tmp_path: Path) -> None:
    assert fixed(script, tmp_path) is None


def test_dash_has_other_builtins(tmp_path: Path) -> None:
    assert fixed('/bin/echo «"$S"', tmp_path, shell="sh") == ('echo "$S"', None, False)
    assert fixed('curl -H «"A: $S" x', tmp_path, shell="sh") is None


def test_programs_of_windows_cannot_open_a_descriptor(tmp_path: Path) -> None:
    found = fixed('curl -H «"A: $S" x', tmp_path, shell="bash", system="windows-latest")
    assert found is not None
    assert found[2] is False


SECRET = "${{ secrets.KEY }}"
WITH_EXPRESSION = {
    f'docker run -e «K="{SECRET}" image': 'K="$SECRETS_KEY" docker run -e K image',
    f'env «X="a-{SECRET}" tool': 'X="a-$SECRETS_KEY" tool',
    f"/bin/echo «'{SECRET}' b": 'echo "$SECRETS_KEY" b',
    f'curl -H «"A: {SECRET}" x': "curl -H @<(printf '%s\\n' \"A: $SECRETS_KEY\") x",
    f'docker login -u "$U" -p «"{SECRET}" x': (
        'printf \'%s\' "$SECRETS_KEY" | docker login -u "$U" --password-stdin x'
    ),
}


@pytest.mark.parametrize("script", WITH_EXPRESSION)
def test_an_expression_becomes_a_variable_with_it(script: str, tmp_path: Path) -> None:
    assert fixed(script, tmp_path) == (WITH_EXPRESSION[script], {"SECRETS_KEY": SECRET}, True)


def test_other_expressions_of_the_script_stay(tmp_path: Path) -> None:
    script = f'tool "${{{{ github.sha }}}}"; env «X="{SECRET}" tool "${{{{ github.ref }}}}"'
    expected = 'tool "${{ github.sha }}"; X="$SECRETS_KEY" tool "${{ github.ref }}"'
    assert fixed(script, tmp_path) == (expected, {"SECRETS_KEY": SECRET}, True)


def test_scripts_of_the_repository(tmp_path: Path) -> None:
    text = '#!/usr/bin/env bash\n# ä\n/bin/echo "$1"\ncurl -H "A: $1" x\n'
    document = Document(path="run", text=text, root=None)

    def fixed_at(line: int, column: int) -> tuple[str, bool] | None:
        span = Span(path="run", line=line, column=column, end_line=line, end_column=column + 4)
        finding = Finding(rule="r", level="error", confidence=Confidence.HIGH, span=span, message="")
        fix = repair(finding, document, Repository(tmp_path))
        return (applied(text, fix.edits), fix.safe) if fix is not None else None

    assert fixed_at(3, 11) == (text.replace("/bin/echo", "echo"), True)
    header = text.replace('"A: $1"', "@<(printf '%s\\n' \"A: $1\")")
    assert fixed_at(4, 9) == (header, False)  # who runs it, and where, is not known
    document = Document(path="run.py", text='#!/usr/bin/python3\n/bin/echo "$1"\n', root=None)
    assert fixed_at(2, 11) is None
