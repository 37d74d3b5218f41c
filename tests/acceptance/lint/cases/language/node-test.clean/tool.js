require('node:child_process').execFileSync('tool', [process.env.ID])
