// Runs commands of the compiled program one after the other. To load the program takes longer than most commands run.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'

const [program, endOfOutput] = process.argv.slice(2)
const { runProgram } = await import(pathToFileURL(program).href)

process.on('message', async ({ words, environment, input }) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  const stdin = new PassThrough().end(input)
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  process.exitCode = undefined

  const code = await runProgram([process.execPath, program, ...words])

  process.stdout.removeAllListeners('error')
  // The end of the output comes through the same pipes, behind all of it.
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.write(endOfOutput)) await once(stream, 'drain')
  }
  process.send({ code: process.exitCode ?? code })
})
process.on('disconnect', () => process.exit())
process.send('ready')
