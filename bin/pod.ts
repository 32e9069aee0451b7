#!/usr/bin/env node
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `The pod needs Node 20.19 or newer, and this is ${process.versions.node}: install a newer one from https://nodejs.org.\n`,
  )
  process.exitCode = 1
} else {
  // Imported late: on an old Node the imports would fail with a stack trace.
  const { runProgram } = await import('./program.js')
  const exitCode = await runProgram(process.argv)
  // A process that runs on may set a failing exit code later.
  if (exitCode !== 0) process.exitCode = exitCode
}
