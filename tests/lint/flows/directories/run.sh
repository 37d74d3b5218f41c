#!/bin/bash
echo "not the one in scripts"
