"""``cmd`` by a table: there is no Windows here to execute it, so each row is what its documentation says."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.languages.following import TIME, arguments_of, confidence, follow, labelled, labels, mutations

from runner_e2e.lint.languages.cmd.parser import Chain, For, Group, If, Label, Pipe, Simple, parse
from runner_e2e.lint.values import UNKNOWN, Confidence, Interpolation, Value

CELL = UNKNOWN + Value.literal(".") + UNKNOWN + Value.literal(".") + UNKNOWN + Value.literal(".") + labelled()


def leaks(text: str) -> list[str]:
    return [argument for _, argument in arguments_of(follow("cmd", text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # words
        ("tool %ID%", "%ID%"),
        ("@tool %ID%", "%ID%"),
        ("tool --id %ID% next", "%ID%"),
        ("tool --id=%ID%", "--id=%ID%"),
        ('tool "--id %ID%" x', '"--id %ID%"'),
        ("tool a^ %ID%", "%ID%"),
        ("tool ^\n  --id ^\n  %ID%", "%ID%"),
        ("tool %id%", "%id%"),
        ("tool.exe %ID%", "%ID%"),
        ('"C:\\Program Files\\tool.exe" %ID%', "%ID%"),
        (".\\tool %ID% > out.txt 2>&1", "%ID%"),
        ("tool %ID%>nul", "%ID%"),
        ("é😀 %ID%", "%ID%"),
        # variables
        ("set X=%ID%\ntool %X%", "%X%"),
        ('set "X=%ID%"\ntool %X%', "%X%"),
        ("set X=a\nset X=%X%-%ID%\ntool %X%", "%X%"),
        ("set PATH=%ID%;%PATH%\ntool %PATH%", "%PATH%"),
        ("setlocal enabledelayedexpansion\nset X=%ID%\ntool !X!", "!X!"),
        ("setlocal EnableDelayedExpansion\nset X=a& set X=%ID%& tool !X!", "!X!"),
        ("set X=%ID%\nset Y=%X:-=_%\ntool %Y%", "%Y%"),
        ("tool %ID:~2%", "%ID:~2%"),
        ("tool %ID:~0,-2%", "%ID:~0,-2%"),
        ("call tool %ID%", "%ID%"),
        # control
        ("if defined ID tool %ID%", "%ID%"),
        ('if "%MODE%"=="a" tool %ID%', "%ID%"),
        ('if /i not "%MODE%" == "a" (tool x) else (tool %ID%)', "%ID%"),
        ('if "a"=="a" (\n  tool %ID%\n) else (\n  tool x\n)', "%ID%"),
        ("if exist f.txt tool %ID%", "%ID%"),
        ("if %ERRORLEVEL% neq 0 tool %ID%", "%ID%"),
        ("tool x && tool %ID% || tool y", "%ID%"),
        ("tool x & tool %ID%", "%ID%"),
        ("(tool %ID%)", "%ID%"),
        ("for %%i in (a %ID%) do tool %%i", "%%i"),
        ("for %%i in (a b) do (\n  tool %%i %ID%\n)", "%ID%"),
        ("for /l %%n in (1,1,3) do tool %%n %ID%", "%ID%"),
        ('for /f "delims=" %%a in ("%ID%") do tool %%a', "%%a"),
        ("for /f %%a in ('echo %ID%') do tool %%a", "%%a"),
        ('for /f "usebackq delims=" %%a in (`printenv ID`) do tool %%a', "%%a"),
        ("echo %ID%>f.txt\nfor /f %%a in (f.txt) do tool %%a", "%%a"),
        ("goto run\ntool x\n:run\ntool %ID%", "%ID%"),
        ("call :run %ID%\nexit /b 0\n:run\ntool %1", "%1"),
        ("call :run %ID%\nexit /b 0\n:run\ntool %~1", "%~1"),
        ("call :run a %ID%\nexit /b 0\n:run\nshift\ntool %1", "%1"),
        ("call :run a %ID%\nexit /b 0\n:run\ntool %*", "%*"),
        ("call :run\ntool %X%\nexit /b 0\n:run\nset X=%ID%\nexit /b 0", "%X%"),
        # processes by other ways
        ('start "" /b tool %ID%', "%ID%"),
        ("start tool %ID%", "%ID%"),
        ("cmd /c tool %ID%", "%ID%"),
        ('bash -c "tool $ID"', "$ID"),
        ('pwsh -Command "tool $env:ID"', "$env:ID"),
        ("powershell -Command tool $env:ID", "$env:ID"),
        ("node -e \"require('child_process').spawnSync('tool', [process.env.ID])\"", "process.env.ID"),
        ("echo %ID%| xargs tool", "xargs tool"),
        # files
        ("echo %ID%> f.txt\nset /p X=<f.txt\ntool %X%", "%X%"),
        ('(echo a& echo %ID%)> f.txt\nbash -c "tool $(cat f.txt)"', "$(cat f.txt)"),
    ],
)
def test_leaks(text: str, expected: str) -> None:
    assert leaks(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "echo %ID%",
        "echo.%ID%",
        "@echo off\necho %ID%",
        "rem tool %ID%",
        ":: tool %ID%",
        "set X=%ID%\ntool x",
        "set X=%ID%\nset X=y\ntool %X%",
        "set X=%ID%\nset X=\ntool %X%",
        "set X=%ID% & tool %X%",
        "if 1==1 (\n  set X=%ID%\n  tool %X%\n)",
        "tool %%ID%%",
        "tool ID",
        "tool %ID:~0,4%",
        "tool %ID:~-5%",
        "echo %ID% | tool",
        "tool < f.txt",
        "echo %ID%> f.txt\ntool f.txt",
        'if "a"=="b" tool %ID%',
        "goto :eof\ntool %ID%",
        "exit /b 0\ntool %ID%",
        "goto end\ntool %ID%\n:end",
        "cd %ID%\nmkdir %ID%\ntype %ID%\ndel %ID%",
        "call :run x\nexit /b 0\n:run\ntool %1",
        "title %ID%",
        "if defined ID (tool yes) else (tool no)",
        "for %%i in (a b) do tool %%i",
        "set ID=\ntool %ID%",
        'bash -c "echo $ID"',
        "tool !ID!",
    ],
)
def test_no_leaks(text: str) -> None:
    assert leaks(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('for /f "tokens=4 delims=." %%a in ("%CELL%") do tool %%a', 1),
        ('for /f "tokens=1,2 delims=." %%a in ("%CELL%") do tool %%a %%b', 0),
        ('for /f "tokens=1-4 delims=." %%a in ("%CELL%") do tool %%a', 0),
        ('for /f "tokens=1,* delims=." %%a in ("%CELL%") do tool %%b', 1),
    ],
)
def test_parts_of_a_cell_id(text: str, expected: int) -> None:
    result = follow("cmd", text, environment={"CELL": CELL, "ID": Value.literal("x")})
    assert len(arguments_of(result)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "echo id=%ID%>>%GITHUB_OUTPUT%",
        "echo id=%ID%>> %GITHUB_OUTPUT%",
        'echo id=%ID%>>"%GITHUB_OUTPUT%"',
        ">>%GITHUB_OUTPUT% echo id=%ID%",
        "(echo id=%ID%)>>%GITHUB_OUTPUT%",
        "(\n  echo mode=fast\n  echo id=%ID%\n) >> %GITHUB_OUTPUT%",
        "(echo id^<^<EOF\necho %ID%\necho EOF)>>%GITHUB_OUTPUT%",
    ],
)
def test_outputs(text: str) -> None:
    outputs = follow("cmd", text).outputs
    assert labels(outputs["id"]) == {"inputs.id"}
    assert outputs.keys() <= {"id", "mode"}


def test_environment_path_and_summary() -> None:
    text = (
        "echo CELL=%ID%>>%GITHUB_ENV%\necho C:\\tools>>%GITHUB_PATH%\n"
        "echo # %ID%>>%GITHUB_STEP_SUMMARY%\necho ::add-mask::%ID%\necho %ID%"
    )
    result = follow("cmd", text)
    assert labels(result.environment_writes["CELL"]) == {"inputs.id"}
    assert [path.constant for path in result.paths] == ["C:\\tools"]
    assert [one.target for one in result.prints if one.target == "summary"] == ["summary"]
    assert [labels(mask) for mask in result.masks] == [{"inputs.id"}]


@pytest.mark.parametrize("text", ["echo %ID%", "type f.txt", "set", "set I", "if 1==1 echo %ID%", "(echo %ID%)"])
def test_what_is_printed(text: str) -> None:
    result = follow("cmd", text, contents={"/github/workspace/f.txt": labelled()})
    assert {one.target for one in result.prints} == {"log"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call scripts\\run.bat %ID%\ntool x", ["%1"]),
        ("call scripts/run %ID%", ["%1"]),
        ("scripts\\run.bat %ID%\ntool %ID%", ["%1"]),
        ("call scripts\\run.bat x\ntool %ID%", ["%ID%"]),
        ("call scripts\\set.cmd\ntool %CELL%", ["%CELL%"]),
    ],
)
def test_scripts_of_the_repository(text: str, expected: list[str]) -> None:
    scripts = {
        "/github/workspace/scripts/run.bat": "@echo off\ntool %1",
        "/github/workspace/scripts/set.cmd": "set CELL=%ID%",
    }
    assert [argument for _, argument in arguments_of(follow("cmd", text, scripts=scripts))] == expected


@pytest.mark.parametrize("command", ["call missing.bat", '"C:\\tools\\vars.cmd"', "%HOME%\\run.bat"])
def test_a_script_that_is_not_there_may_start_a_process(command: str) -> None:
    (leak,) = follow("cmd", f"{command} %ID%").leaks
    assert confidence(leak) == Confidence.LOW


def test_an_expression_in_the_text() -> None:
    text = "set X=@@@\ntool %X%"
    hole = Interpolation(start=6, end=9, value=labelled())
    assert [argument for _, argument in arguments_of(follow("cmd", text, interpolations=(hole,)))] == ["%X%"]


# --- the parser


def test_commands() -> None:
    nodes, whole = parse("a\nb & c && d || e\nf | g\n(h)\nif x==y i else j\nfor %%k in (l) do m\n:n\nrem o\n")
    assert whole
    assert [type(node) for node in nodes] == [Simple, Chain, Pipe, Group, If, For, Label]


@pytest.mark.parametrize(
    "text", ["(", ")", "((", "if", "for %%i in (", "if a==", "a >", "&", "|", '"', "^", ":", "%", "a & ("]
)
def test_what_cannot_be_read_breaks_nothing(text: str) -> None:
    parse(text)
    follow("cmd", text)


# --- bounds


SNIPPETS = [
    'set "X=%ID%"\nif /i "%X%"=="a" (\n  tool %X:a=b% >> f 2>&1\n) else call :sub %X:~1,2% %*\n:sub\necho %~1 & shift',
    "for /f \"tokens=1,2 delims=.\" %%a in ('type f') do (\n  tool %%a | more && goto :eof\n)\n@echo off\nrem x",
    'setlocal enabledelayedexpansion\nset /a N=1+1\n(echo !N!)>>%GITHUB_OUTPUT%\nstart "" /b tool ^\n  %ID%',
]


@pytest.mark.parametrize("seed", range(6))
def test_no_text_breaks_it(seed: int) -> None:
    for text in mutations(SNIPPETS, seed, 60):
        result = follow("cmd", text)
        assert all(0 <= leak.start <= leak.end <= len(leak.origin.text) for leak in result.leaks)


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=st.sampled_from('()"%!^&|<>=:;,@~*abx1 \n\U000f0000é/'), max_size=80))
def test_no_signs_break_it(text: str) -> None:
    follow("cmd", "tool %ID%\n" + text)


@pytest.mark.parametrize(
    "text",
    [
        "tool %ID%\n" * 3_000,
        "set X=%X%%ID%\n" * 3_000,
        "(" * 3_000 + "tool" + ")" * 3_000,
        "if a==b " * 2_000 + "tool",
        "a & " * 3_000,
        "a | " * 3_000,
        "%" * 20_000,
        "^" * 20_000,
        ">" * 10_000,
        "call :x\n" * 200 + ":x\ncall :x",
        ":a\ngoto a\n" * 500,
        "for /f %%i in ('" * 1_000,
        "if exist x ( tool %ID% ) else ( tool x )\n" * 1_000,
    ],
    ids=range(13),
)
def test_large_programs_end_in_time(text: str) -> None:
    started = time.process_time()
    follow("cmd", text)
    assert time.process_time() - started < TIME
