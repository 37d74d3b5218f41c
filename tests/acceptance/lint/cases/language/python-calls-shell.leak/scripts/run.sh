tool "$CASE"
