#!/bin/bash
./inner/run.sh
