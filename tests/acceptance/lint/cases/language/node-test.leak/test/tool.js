const { execFileSync } = require('node:child_process')
const { describe, it } = require('node:test')

describe('the tool', () => {
  it('gets the case', () => {
    execFileSync('tool', [process.env.ID]) // # leak-here
  })
})
