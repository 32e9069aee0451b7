// Runs commands of the compiled program one after the other, because loading the program takes longer than most commands.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'

const [program, endOfOutput] = process.argv.slice(2)
const { runProgram } = await import(pathToFileURL(program).href)

process.on('message', async ({ args, environment, input }) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  const stdin = new PassThrough().end(input)
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  process.exitCode = undefined

  const code = await runProgram([process.execPath, program, ...args])

  process.stdout.removeAllListeners('error')
  // The marker follows all output in the same pipes.
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.write(endOfOutput)) await once(stream, 'drain')
  }
  process.send({ code: process.exitCode ?? code })
})
process.on('disconnect', () => process.exit())
process.send('ready')
