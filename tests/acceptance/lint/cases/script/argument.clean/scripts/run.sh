echo "$ID"
