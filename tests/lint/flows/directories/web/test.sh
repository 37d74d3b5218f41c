#!/bin/sh
tool "$CELL" # leak
