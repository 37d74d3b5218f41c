if [ "$CELL" ]; then
  tool "$CELL" # leak
fi
