tool "$CELL"
