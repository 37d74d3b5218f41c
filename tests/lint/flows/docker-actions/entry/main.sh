#!/bin/sh
echo "FROM_IMAGE=$CELL" >> "$GITHUB_ENV"
