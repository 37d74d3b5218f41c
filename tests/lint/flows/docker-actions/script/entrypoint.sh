#!/bin/sh
tool "$1"
tool "$INPUT_CELL_ID" # leak
printf 'cell=%s\n' "$INPUT_CELL_ID" >> "$GITHUB_OUTPUT"
echo "handle=h-1" >> "$GITHUB_OUTPUT"
