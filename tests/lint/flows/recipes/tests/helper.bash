show() {
  tool "$1" # leak
}
