start() {
  printf "%s\n" "$1"
}
