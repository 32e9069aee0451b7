import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ApiPod, startApiPod } from '../support/pods/api-pod.js'

const folder = fileURLToPath(new URL('typed', import.meta.url))

/** Runs npm in the nested package. Returns both outputs; throws if npm fails. */
async function runNpm(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('npm', [...args], { cwd: folder })
  return `${stdout}${stderr}`
}

/** Imports a function of the nested package. The path is dynamic, because the types of this package lack generated files. */
async function importProgram(file: string, name: string): Promise<(base: string, token: string) => Promise<string[]>> {
  return (await import(`${folder}/${file}`))[name]
}

let pod: ApiPod
let base: string
beforeAll(async () => {
  await rm(`${folder}/generated`, { recursive: true, force: true })
  expect(await runNpm('ci', '--no-audit', '--no-fund')).not.toMatch(/warn/i)
  pod = await startApiPod()
  base = await pod.app.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(() => pod.close())

it.each(['openapi-typescript', 'hey-api'])('%s generates a client without a warning', async (generator) => {
  expect(await runNpm('run', `generate:${generator}`)).not.toMatch(/warn|error|fail|unsupported|missing/i)
})

it('both clients, and the programs that use them, pass the strict type check', async () => {
  expect(await runNpm('run', '--silent', 'check')).toBe('')
})

it('openapi-fetch creates a post, lists the stream, comments, and branches on a reason', async () => {
  const { ann } = await pod.people('ann')
  const program = await importProgram('with-openapi-fetch.ts', 'useOpenapiFetch')

  expect(await program(base, ann.token)).toEqual([
    expect.stringMatching(/^post Typed hello by /),
    'comment Typed comment',
    'aspects_required: aspects',
  ])
})

it('hey-api creates a post, lists the stream, comments, and branches on a reason', async () => {
  const { ben } = await pod.people('ben')
  const program = await importProgram('with-hey-api.ts', 'useHeyApi')

  expect(await program(base, ben.token)).toEqual([
    expect.stringMatching(/^post Typed hello by /),
    'comment Typed comment',
    'aspects_required: aspects',
    'post_not_found',
  ])
})
