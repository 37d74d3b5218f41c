echo "$WHAT"
