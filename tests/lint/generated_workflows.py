"""Workflows made of pieces that fixes are about, in all the ways in which YAML and shells let people write them."""

from __future__ import annotations

from hypothesis import strategies as st

HOLE = "${{ inputs.selected-id }}"
SECRET = "${{ secrets.TOKEN }}"

# Lines of shell scripts, one a line of a script; some leak, some only look like it.
PIECES_OF_COMMANDS = (
    f'echo "a {HOLE} b"',
    f"echo '{HOLE}'",
    f"case {HOLE} in x) ;; esac",
    f"tool --id={HOLE} '{HOLE}'x",
    f'x={HOLE}; y="${{x}}-{HOLE}"',
    f"# about {HOLE}: it's",
    "tool \"${{ github.event.inputs['selected-id'] }}\"",
    "echo '${{ toJSON(inputs) }}'",
    'echo "${{ format(\'{0}: "x"\', inputs.selected-id) }}"',
    'echo ${{ env.ID }} "${{ env.ID }}"',
    f"cat <<E\n  ä {HOLE}\nE",
    f"cat <<'E'\n{HOLE}\nE",
    f"if [[ -n {HOLE} ]]; then tool {{a,{HOLE}}}; fi",
    f"echo \\{HOLE} $(tool `echo {HOLE}`)",
    f"{HOLE} --flag",
    '/bin/echo "$ID" && /usr/bin/printf "%s" "$ID"',
    'env X="$ID" Y=1 tool --go',
    'docker run -e X="$ID" --rm image sh -c "echo"',
    f'docker run -e "X={SECRET}" image',
    f"docker login -u me -p {SECRET} ghcr.io",
    f'curl -H "Authorization: Bearer {SECRET}" https://example.org/ä',
    'git -c http.extraheader="AUTHORIZATION: $TOKEN" fetch',
    'x=$(basename "$ID")',
    "jq --arg id \"$ID\" '.x == $id' f",
    "npm ci && pip install x",
    "tool --x # runner-e2e: ignore[confidential-summary] nothing is there",
    "make",
)
NEIGHBOURS = st.sampled_from(
    [
        [],
        ["id: one"],
        ["if: always() # why"],
        ["name: 'Ünicode: ä'"],
        ["env: {A: b} # note"],
        ["env:", "  A: 'b'", "  # last", "  C: d"],
        ["env:"],
        ["env: ${{ fromJSON('{}') }}"],
        ["env: {INPUTS_SELECTED_ID: other}"],
        [f"env: {{OWN: '{HOLE}'}}"],
        ["shell: sh"],
        ["shell: pwsh"],
        ["working-directory: .", "", "# a comment of its own"],
    ]
)
PIECES_OF_USES: tuple[list[str], ...] = (
    ["uses: actions/checkout@v4 # why"],
    ["uses: 'actions/checkout@v4'", "with:", "  fetch-depth: 0"],
    ["uses: actions/checkout@v4", "with: {ref: x, persist-credentials: true}"],
    [
        "uses: org/runner-e2e-action@v1",
        "env:",
        "  OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}",
        "with: {command: run}",
    ],
)


@st.composite
def scalars(draw: st.DrawFn, script: str) -> list[str]:
    """The lines of ``run:`` with *script*, in a style that can hold it."""
    styles = ["|", "|-", "|+", "|2", '"']
    if "\n" not in script:
        styles += ["'", ">-"]
        if ": " not in script and " #" not in script and script[0] not in "#{[&*!|>'\"%@`":
            styles.append("")
    style = draw(st.sampled_from(styles))
    if style == "'":
        return ["run: '" + script.replace("'", "''") + "'"]
    if style == '"':
        text = script.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return [f'run: "{text}"']
    if not style:
        return [f"run: {script}"]
    blank = [""] * draw(st.integers(0, 2))
    return [f"run: {style}", *(f"  {line}" if line else "" for line in script.split("\n")), *blank]


@st.composite
def steps(draw: st.DrawFn) -> list[str]:
    """The lines of one step, without the dash."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(PIECES_OF_USES))
    script = "\n".join(draw(st.lists(st.sampled_from(PIECES_OF_COMMANDS), min_size=1, max_size=4)))
    before, after = draw(NEIGHBOURS), draw(NEIGHBOURS)
    taken = {line.partition(":")[0] for line in before}
    after = [] if any(line.partition(":")[0] in taken for line in after) else after
    return [*before, *draw(scalars(script)), *after]


@st.composite
def workflows(draw: st.DrawFn) -> str:
    """A whole file."""
    width = draw(st.sampled_from([2, 4]))
    lines = ["on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}} # ä", ""]
    lines += draw(st.sampled_from([[], ["permissions: {}"], ["env: {TOP: a}"], ["env:", "  TOP: a", ""]]))
    lines += ["jobs:", " " * width + "a:"]
    inner = " " * 2 * width
    job = ["runs-on: ubuntu-latest"]
    job += draw(st.sampled_from([[], ["timeout-minutes: 5"], ["permissions: {contents: write} # why"]]))
    job += ["env:", f"  ID: {HOLE}", f"  TOKEN: {SECRET}", "steps:"]
    lines += [inner + line for line in job]
    dash = inner + " " * draw(st.sampled_from([0, 2]))
    for step in draw(st.lists(steps(), min_size=1, max_size=3)):
        lines += [f"{dash}- {step[0]}", *(f"{dash}  {line}" if line else "" for line in step[1:])]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return "\ufeff" * draw(st.booleans()) + text
