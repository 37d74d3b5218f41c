tool "$CELL" # leak
