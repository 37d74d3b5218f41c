#!/bin/sh
tool "$CELL"
