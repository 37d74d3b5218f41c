"""What a shell script does with confidential values: a parser and an abstract interpreter."""
