#!/bin/bash
tool "$CELL" # leak
