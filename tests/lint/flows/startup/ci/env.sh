# Every bash of the job runs this first.
set -u
tool --about "$CELL" # leak
evaluate() {
  tool "$CELL" # leak
}
