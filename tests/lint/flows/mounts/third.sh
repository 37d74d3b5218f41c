#!/bin/sh
./inner/third.sh
