tool "$ID"
