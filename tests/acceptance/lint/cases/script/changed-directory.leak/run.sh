#!/bin/bash
tool
