"""PowerShell by a table: there is no PowerShell here to execute it, so each row is what its documentation says."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.languages.following import TIME, arguments_of, confidence, follow, labelled, labels, mutations

from runner_e2e.lint.languages.powershell.parser import parse
from runner_e2e.lint.languages.powershell.syntax import Assign, Command, Gap, If, Pipeline
from runner_e2e.lint.values import UNKNOWN, Confidence, Interpolation, Value

CELL = UNKNOWN + Value.literal(".") + UNKNOWN + Value.literal(".") + UNKNOWN + Value.literal(".") + labelled()


def leaks(text: str) -> list[str]:
    return [argument for _, argument in arguments_of(follow("powershell", text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # words of a command
        ("tool $env:ID", "$env:ID"),
        ("tool ${env:ID}", "${env:ID}"),
        ("tool --id $env:ID next", "$env:ID"),
        ('tool "--id=$env:ID"', '"--id=$env:ID"'),
        ("tool --id=$env:ID", "--id=$env:ID"),
        ("tool -Id:$env:ID", "-Id:$env:ID"),
        ("tool a-$($env:ID)-b", "a-$($env:ID)-b"),
        ("tool (Get-Content env:ID)", "(Get-Content env:ID)"),
        ("tool $($env:ID.ToUpper())", "$($env:ID.ToUpper())"),
        ("tool $env:ID.ToUpper()", "$env:ID.ToUpper()"),
        ("tool a, $env:ID", "$env:ID"),
        ("tool `\n  --id `\n  $env:ID", "$env:ID"),
        ("tool --% --id %ID%", " --id %ID%"),
        ("./tool.exe $env:ID", "$env:ID"),
        ("& tool $env:ID", "$env:ID"),
        ("& 'C:\\Program Files\\tool.exe' $env:ID", "$env:ID"),
        ("$name = 'tool'; & $name $env:ID", "$env:ID"),
        ("tool $env:ID 2>&1 | Out-Null", "$env:ID"),
        ("tool $env:ID > out.txt", "$env:ID"),
        ("sudo tool $env:ID", "$env:ID"),
        ("é😀 $env:ID", "$env:ID"),
        # variables
        ("$id = $env:ID; tool $id", "$id"),
        ("[string]$id = $env:ID; tool $ID", "$ID"),
        ("$a, $b = 'x', $env:ID; tool $b", "$b"),
        ("$id = 'x'; $id += $env:ID; tool $id", "$id"),
        ("$script:id = $env:ID; tool $id", "$id"),
        ("Set-Variable -Name id -Value $env:ID; tool $id", "$id"),
        ("tool (Get-Variable env:ID -ErrorAction Ignore) $env:id", "$env:id"),
        ("(Get-Item env:ID).Value | ForEach-Object { tool $_ }", "$_"),
        ("$env:CELL = $env:ID; tool $env:CELL", "$env:CELL"),
        ("[Environment]::SetEnvironmentVariable('CELL', $env:ID); tool $env:CELL", "$env:CELL"),
        ("tool ([Environment]::GetEnvironmentVariable('ID'))", "([Environment]::GetEnvironmentVariable('ID'))"),
        ("tool ([Environment]::GetEnvironmentVariable('id'))", "([Environment]::GetEnvironmentVariable('id'))"),
        ("tool ([Environment]::GetEnvironmentVariable($args[0]))", "([Environment]::GetEnvironmentVariable($args[0]))"),
        ("tool (Get-Content env:id)", "(Get-Content env:id)"),
        ("if ([Environment]::GetEnvironmentVariable('MODE')) { tool $env:ID }", "$env:ID"),
        # strings
        ('$t = @"\nid $env:ID\n"@\ntool $t', "$t"),
        ("tool ('{0}-{1}' -f 'x', $env:ID)", "('{0}-{1}' -f 'x', $env:ID)"),
        ("tool ('id=' + $env:ID)", "('id=' + $env:ID)"),
        ("tool ($env:ID -replace '-', '_')", "($env:ID -replace '-', '_')"),
        ("tool $env:ID.Replace('-', '_')", "$env:ID.Replace('-', '_')"),
        ("tool $env:ID.Substring(2)", "$env:ID.Substring(2)"),
        ("tool ([string]::Join('-', 'a', $env:ID))", "([string]::Join('-', 'a', $env:ID))"),
        ("tool ('a', $env:ID -join ',')", "('a', $env:ID -join ',')"),
        ("tool $env:ID.Trim()", "$env:ID.Trim()"),
        ("tool ([uri]::EscapeDataString($env:ID))", "([uri]::EscapeDataString($env:ID))"),
        # lists and tables
        ("$list = @('--id', $env:ID); tool @list", "@list"),
        ("$list = @(); $list += '--id'; $list += $env:ID; tool $list", "$list"),
        ("$list = 'a', $env:ID; tool $list[1]", "$list[1]"),
        ("$t = @{ id = $env:ID; mode = 'x' }; tool $t.id", "$t.id"),
        ("$t = @{}; $t['id'] = $env:ID; tool $t['id']", "$t['id']"),
        ("$t = @{}; $t.id = $env:ID; tool $t.id", "$t.id"),
        ("$t = @{}; $t.Add('id', $env:ID); tool $t.id", "$t.id"),
        ("$o = [PSCustomObject]@{ Id = $env:ID }; tool $o.Id", "$o.Id"),
        ('$o = \'{"a": {"id": "x"}}\' | ConvertFrom-Json; $o.a.id = $env:ID; tool $o.a.id', "$o.a.id"),
        # pipelines and blocks
        ("$env:ID | ForEach-Object { tool $_ }", "$_"),
        ("'a', $env:ID | % { tool $PSItem }", "$PSItem"),
        ("'a', $env:ID | Where-Object { $_ -ne 'a' } | % { tool $_ }", "$_"),
        ("$env:ID | xargs tool", "xargs tool"),
        ("Write-Output $env:ID | xargs tool", "xargs tool"),
        ("$run = { param($x) tool $x }; & $run $env:ID", "$x"),
        ("Invoke-Command -ScriptBlock { tool $args[0] } -ArgumentList $env:ID", "$args[0]"),
        ("$run = { tool $args }; $run.Invoke($env:ID)", "$args"),
        # functions
        ("function Start-It($x) { tool $x }\nStart-It $env:ID", "$x"),
        ("function Start-It { param([string]$Cell, [int]$N = 1) tool $Cell }\nStart-It -N 2 -Cell $env:ID", "$Cell"),
        ("function Start-It { tool @args }\nStart-It --id $env:ID", "@args"),
        ("Start-It $env:ID\nfunction Start-It($x) { tool $x }", "$x"),
        ("function Get-It { return $env:ID }\ntool (Get-It)", "(Get-It)"),
        ("function Get-It { $env:ID }\n$x = Get-It\ntool $x", "$x"),
        ("function F { process { tool $_ } }\n'a', $env:ID | F", "$_"),
        ("function F { begin { $x = $env:ID } process { } end { tool $x } }\nF", "$x"),
        ("$p = @{ x = $env:ID }\nfunction Start-It($x) { tool $x }\nStart-It @p", "$x"),
        # control flow
        ("if ($env:MODE -eq 'a') { $x = 'b' } else { $x = $env:ID }\ntool $x", "$x"),
        ("$x = if ($env:MODE) { $env:ID } else { 'b' }\ntool $x", "$x"),
        ("$x = $env:MODE ? $env:ID : 'b'\ntool $x", "$x"),
        ("$x = $env:MODE ?? $env:ID\ntool $x", "$x"),
        ("foreach ($x in 'a', $env:ID) { tool $x }", "$x"),
        ("for ($i = 0; $i -lt 2; $i++) { tool $env:ID }", "$env:ID"),
        ("while (Test-Path x) { tool $env:ID; break }", "$env:ID"),
        ("do { tool $env:ID } until ($true)", "$env:ID"),
        ("switch ($env:MODE) { 'a' { tool $env:ID } default { tool x } }", "$env:ID"),
        ("switch ($env:ID) { default { tool $_ } }", "$_"),
        ("try { tool $env:ID } catch { tool x } finally { tool y }", "$env:ID"),
        ("try { tool x } catch [System.Exception] { tool $env:ID }", "$env:ID"),
        ("tool x && tool $env:ID || tool y", "$env:ID"),
        # processes by other ways
        ("Start-Process tool -ArgumentList '--id', $env:ID -Wait", "$env:ID"),
        ('Start-Process -FilePath tool -ArgumentList "--id $env:ID"', '"--id $env:ID"'),
        ("saps tool $env:ID", "$env:ID"),
        ('Invoke-Expression "tool $env:ID"', "$env:ID"),
        ("iex 'tool $env:ID'", "$env:ID"),
        ("[System.Diagnostics.Process]::Start('tool', $env:ID)", "$env:ID"),
        ("pwsh -Command 'tool $env:ID'", "$env:ID"),
        ("pwsh -NoProfile -Command { tool $env:ID }", "$env:ID"),
        ('powershell -Command "tool `$env:ID"', '"tool `$env:ID"'),
        ("bash -c 'tool \"$ID\"'", '"$ID"'),
        ("cmd /c 'tool %ID%'", "%ID%"),
        ('python3 -c \'import os, subprocess; subprocess.run(["tool", os.environ["ID"]])\'', 'os.environ["ID"]'),
        ("Start-Job { tool $env:ID }", "$env:ID"),
        ("@($env:ID) | ForEach-Object -Parallel { tool $_ } -ThrottleLimit 2", "$_"),
        ("$x = $env:ID; 1 | ForEach-Object -Parallel { tool $using:x }", "$using:x"),
        ("1, 2 | ForEach-Object -Begin { $x = 'a' } -Process { $x } -End { tool $env:ID }", "$env:ID"),
        ('Push-Location "out/$env:ID"; tool $PWD.Path', "$PWD.Path"),
        ('Set-Location "out/$env:ID"; tool (Get-Location).Path', "(Get-Location).Path"),
        # files
        ("$env:ID | Out-File f.txt; tool (Get-Content f.txt)", "(Get-Content f.txt)"),
        ('Set-Content -Path f.txt -Value $env:ID; tool "$(Get-Content -Raw f.txt)"', '"$(Get-Content -Raw f.txt)"'),
        ("$env:ID > f.txt; bash -c 'tool \"$(cat f.txt)\"'", '"$(cat f.txt)"'),
        ("[IO.File]::WriteAllText('f', $env:ID); tool ([IO.File]::ReadAllText('f'))", "([IO.File]::ReadAllText('f'))"),
        ("$x = printenv ID; tool $x", "$x"),
        ("$x = $(bash -c 'echo $ID'); tool $x", "$x"),
    ],
)
def test_leaks(text: str, expected: str) -> None:
    assert leaks(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "Write-Host $env:ID",
        "echo $env:ID",
        "Write-Output $env:ID | Out-Null",
        "$env:ID",
        "tool x # $env:ID",
        "<# tool $env:ID #> tool x",
        "tool '$env:ID'",
        "tool `$env:ID",
        "tool @'\n$env:ID\n'@",
        "$env:ID | tool",
        "tool $env:ID.Length",
        "tool ($env:ID -eq 'x')",
        "tool ($env:ID -match 'x')",
        "tool ([string]::IsNullOrEmpty($env:ID))",
        "tool $env:ID.Substring(0, 4)",
        "tool $env:ID[0]",
        "tool $env:ID.StartsWith('a')",
        "$x = $env:ID; $x = 'y'; tool $x",
        "if ($true) { $x = 'a' } else { $x = $env:ID }\ntool $x",
        "$x = $env:ID ? 'yes' : 'no'; tool $x",
        "$env:CELL = $env:ID; tool --from-environment",
        "$env:CELL = $env:ID; Remove-Item env:CELL; tool $env:CELL",
        "$env:CELL = $env:ID; $env:CELL = $null; tool $env:CELL",
        "$t = @{ id = $env:ID; mode = 'x' }; tool $t.mode",
        "$t = @{ id = $env:ID }; tool $t.Keys",
        "$list = 'a', $env:ID; tool $list[0]",
        "$list = 'a', $env:ID; tool $list.Count",
        "function Start-It($x) { tool $x }\nStart-It y",
        "tool x; exit 0; tool $env:ID",
        "return; tool $env:ID",
        "throw 'x'; tool $env:ID",
        "tool ([Security.Cryptography.SHA256]::HashData([Text.Encoding]::UTF8.GetBytes($env:ID)))",
        "Get-FileHash f; tool (Get-Date) (New-Guid)",
        "Set-Content f $env:ID; tool f",
        "Test-Path $env:ID; Join-Path out $env:ID; New-Item $env:ID",
        "Invoke-RestMethod -Uri https://example.org -Body $env:ID",
        "Start-Process tool -ArgumentList x -Environment @{ CELL = $env:ID }",
        "[Console]::WriteLine($env:ID)",
        "bash -c 'echo \"$ID\"'",
        "tool (Get-Random)",
        'Push-Location "out/$env:ID"; Pop-Location; tool $PWD',
    ],
)
def test_no_leaks(text: str) -> None:
    assert leaks(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool ($env:CELL -split '\\.')[3]", 1),
        ("tool ($env:CELL -split '\\.')[0]", 0),
        ("tool $env:CELL.Split('.')[-1]", 1),
        ("tool $env:CELL.Split('.')[1]", 0),
        ("$suite, $profile, $place, $case = $env:CELL.Split('.'); tool $suite $place", 0),
        ("$suite, $rest = $env:CELL.Split('.'); tool $rest", 1),
        ("foreach ($part in $env:CELL.Split('.')) { tool $part }", 1),
    ],
)
def test_parts_of_a_cell_id(text: str, expected: int) -> None:
    result = follow("powershell", text, environment={"CELL": CELL, "ID": Value.literal("x")})
    assert len(arguments_of(result)) == expected


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("inputs.'selected-id'", 1),
        ("inputs.'Selected-Id'", 1),
        ("inputs.mode", 0),
        ("repository.full_name", 0),
        ("repository", 0),
        ("inputs", 0),
    ],
)
def test_the_event_file(member: str, expected: int) -> None:
    event = Value.literal('{"inputs": {"mode": "fast", "selected-id": "') + labelled() + Value.literal('"}, ') + UNKNOWN
    given = {"/github/event.json": event + Value.literal("}")}
    text = f"$e = Get-Content $env:GITHUB_EVENT_PATH -Raw | ConvertFrom-Json\ntool $e.{member}"
    assert len(arguments_of(follow("powershell", text, contents=given))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Get-Something $env:ID",
        "./missing.ps1 $env:ID",
        '& "$env:SOMEWHERE/run.ps1" $env:ID',
        "[My.Runner]::Run($env:ID)",
        "tool ([Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($env:ID)))",
    ],
)
def test_what_is_only_possible(text: str) -> None:
    assert [confidence(leak) for leak in follow("powershell", text).leaks] == [Confidence.LOW]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("class Cell { [string]$Id }\ntool x", "classes are not followed"),
        ("tool 'x", "not closed"),
        ('$x = @"\nabc', "not closed"),
        ("if ($a { tool x }", "missing"),
    ],
)
def test_what_is_not_of_the_subset_is_said(text: str, reason: str) -> None:
    (gap,) = follow("powershell", text).unanalysable
    assert reason in gap.reason
    assert {taint.confidence for taint in gap.taints} == {Confidence.LOW}


def test_lines_after_a_gap_are_followed() -> None:
    assert leaks("class Cell { }\ntool $env:ID") == ["$env:ID"]


@pytest.mark.parametrize(
    "text",
    [
        '"id=$env:ID" >> $env:GITHUB_OUTPUT',
        '"id=$env:ID" | Out-File -FilePath $env:GITHUB_OUTPUT -Encoding utf8 -Append',
        'Add-Content -Path $env:GITHUB_OUTPUT -Value "id=$env:ID"',
        'echo "id=$env:ID" >> "$env:GITHUB_OUTPUT"',
        'Write-Output "id=$env:ID" | Add-Content $env:GITHUB_OUTPUT',
        '[System.IO.File]::AppendAllText($env:GITHUB_OUTPUT, "id=$($env:ID)`n")',
        '@"\nid<<EOF\n$env:ID\nEOF\n"@ >> $env:GITHUB_OUTPUT',
        'bash -c \'echo "id=$ID" >> "$GITHUB_OUTPUT"\'',
        '"mode=fast", "id=$env:ID" | Out-File $env:GITHUB_OUTPUT -Append',
    ],
)
def test_outputs(text: str) -> None:
    outputs = follow("powershell", text).outputs
    assert labels(outputs["id"]) == {"inputs.id"}
    assert outputs.keys() <= {"id", "mode"}


def test_environment_path_and_summary() -> None:
    result = follow(
        "powershell",
        '"CELL=$env:ID" >> $env:GITHUB_ENV\n"/opt/tool" >> $env:GITHUB_PATH\n"# $env:ID" >> $env:GITHUB_STEP_SUMMARY',
    )
    assert labels(result.environment_writes["CELL"]) == {"inputs.id"}
    assert [path.constant for path in result.paths] == ["/opt/tool"]
    assert [one.target for one in result.prints] == ["summary"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Write-Host $env:ID", "log"),
        ("Write-Host 'a' $env:ID", "log"),
        ("$env:ID", "log"),
        ('"id $env:ID"', "log"),
        ("Write-Error $env:ID", "log"),
        ("Get-ChildItem env:", "log"),
        ("@{ id = $env:ID }", "log"),
        ('Write-Host "::notice::$env:ID"', "annotation"),
        ("throw $env:ID", "log"),
        ("$env:ID | Out-Host", "log"),
    ],
)
def test_what_is_printed(text: str, target: str) -> None:
    assert {one.target for one in follow("powershell", text).prints} == {target}


def test_a_mask() -> None:
    result = follow("powershell", 'Write-Host "::add-mask::$env:ID"; Write-Host $env:ID')
    assert [labels(mask) for mask in result.masks] == [{"inputs.id"}]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./scripts/run.ps1 -Cell $env:ID", ["$Cell"]),
        ('& "./scripts/run.ps1" $env:ID', ["$Cell"]),
        ("pwsh -File scripts/run.ps1 $env:ID", ["$env:ID", "$Cell"]),
        ("$Cell = $env:ID; . ./scripts/inner.ps1", ["$Cell"]),
        ("./scripts/run.ps1 -Cell x", []),
    ],
)
def test_scripts_of_the_repository(command: str, expected: list[str]) -> None:
    scripts = {
        "/github/workspace/scripts/run.ps1": "param([string]$Cell)\ntool $Cell",
        "/github/workspace/scripts/inner.ps1": "tool $Cell",
    }
    found = arguments_of(follow("powershell", command, scripts=scripts))
    assert sorted(argument for _, argument in found) == sorted(expected)


def test_an_expression_in_the_text() -> None:
    text = "$id = '@@@'\ntool $id"
    hole = Interpolation(start=7, end=10, value=labelled())
    assert [argument for _, argument in arguments_of(follow("powershell", text, interpolations=(hole,)))] == ["$id"]


# --- the parser


def commands(text: str) -> list[str]:
    found = []
    for statement in parse(text).body:
        if isinstance(statement, Pipeline):
            found += [text[stage.start : stage.end] for stage in statement.stages if isinstance(stage, Command)]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; b\nc", ["a", "b", "c"]),
        ("a | b | c", ["a", "b", "c"]),
        ("a `\n b", ["a `\n b"]),
        ("a # b", ["a"]),
        ("a 'b; c' \"d | e\"", ["a 'b; c' \"d | e\""]),
        ("a {b; c}", ["a {b; c}"]),
        ("a $(b; c) (d | e)", ["a $(b; c) (d | e)"]),
        ("a b#c", ["a b#c"]),
        ("a 2>&1 >f", ["a 2>&1 >f"]),
        ("a @{ b = 1\nc = 2 }", ["a @{ b = 1\nc = 2 }"]),
        ("a &\nb", ["a", "b"]),
    ],
)
def test_commands_are_told_apart(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


def test_statements() -> None:
    body = parse("$a = 1\nif ($a) { b } elseif ($c) { d } else { e }\n$x.y[0] += f").body
    assert [type(statement) for statement in body] == [Assign, If, Assign]
    assert isinstance(body[1], If)
    assert len(body[1].branches) == 2
    assert body[1].otherwise is not None


@pytest.mark.parametrize(
    "text", ["}", ")", "a ) b", "} a {", "@'", '"$(', "[", "$a[", "@{", "a |", "& ", "param(", "-"]
)
def test_what_cannot_be_read_is_a_gap_or_left_out(text: str) -> None:
    for statement in parse(text).body:
        assert isinstance(statement, Gap | Pipeline | Assign)


# --- bounds


SNIPPETS = [
    "$id = $env:ID\nif ($id -like 'a*') { tool --id=$id } else { tool \"$($id.Split('.')[0])\" }",
    "function F([string]$a, $b = @{ x = 1 }) { foreach ($c in $a, $b.x) { & tool $c @args 2>&1 | Out-Null } }",
    "try { $x = @(1, 2) + (3..5) | % { $_ * 2 } } catch { throw } finally { Write-Host '{0}' -f $x }",
    "@'\na\n'@ | Set-Content f; switch ($a) { 'b' { c } default { return } }; [int]::Parse('1') -as [string]",
]


@pytest.mark.parametrize("seed", range(6))
def test_no_text_breaks_it(seed: int) -> None:
    for text in mutations(SNIPPETS, seed, 60):
        result = follow("powershell", text)
        assert all(0 <= leak.start <= leak.end <= len(leak.origin.text) for leak in result.leaks)


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=st.sampled_from("(){}[]`'\"$@;,.=>+-*/!?:&|#abx1 \n\U000f0000é%"), max_size=80))
def test_no_signs_break_it(text: str) -> None:
    follow("powershell", "$env:ID;" + text)


@pytest.mark.parametrize(
    "text",
    [
        "tool $env:ID\n" * 3_000,
        "$s += $env:ID\n" * 3_000,
        "(" * 3_000 + "1" + ")" * 3_000,
        "if ($x) { tool $env:ID\n" * 1_000 + "}" * 1_000,
        '"$(' * 2_000,
        "$a[" * 2_000,
        "a | " * 3_000 + "b",
        "a && " * 2_000 + "b",
        "$x = " * 2_000 + "1",
        "@{a=" * 2_000,
        "1 + " * 3_000 + "1",
        "[int]" * 3_000 + "1",
        "{" * 2_000 + "}" * 2_000,
        "$a.b(" * 2_000,
    ],
    ids=range(14),
)
def test_large_programs_end_in_time(text: str) -> None:
    started = time.process_time()
    follow("powershell", text)
    assert time.process_time() - started < TIME


def test_the_answer_to_a_request_may_hold_what_was_sent() -> None:
    (leak,) = follow("powershell", "tool (Invoke-RestMethod -Uri https://example.org -Body $env:ID)").leaks
    assert confidence(leak) == Confidence.LOW
