const { execFileSync } = require('node:child_process')
execFileSync('tool', [process.env.CASE]) // # leak
