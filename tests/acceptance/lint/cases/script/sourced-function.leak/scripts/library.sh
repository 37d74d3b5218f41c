start() {
  tool --id "$1"
}
