#!/bin/bash
tool "$ID"
