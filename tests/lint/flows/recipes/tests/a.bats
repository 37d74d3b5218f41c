#!/usr/bin/env bats
load helper

setup() {
  CELL_ID=$CELL
}

@test "passes the id on" {
  tool "$CELL_ID" # leak
  tool "$HOME"
  run tool --id "$CELL_ID" # leak
  show "$CELL_ID"
}

@test "reads it" {
  printf '%s' "$CELL_ID" | tool
}
