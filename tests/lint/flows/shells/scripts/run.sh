#!/bin/sh
case "$1" in *) exec tool "$1" ;; esac # leak
