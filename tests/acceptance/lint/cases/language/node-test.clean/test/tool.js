const { execFileSync } = require('node:child_process')
const test = require('node:test')

test('the tool gets its length', () => {
  execFileSync('tool', [String(process.env.ID.length)])
})
