#!/bin/bash
tool "${INPUT_CELL##*.}" # leak
