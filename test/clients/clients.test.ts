import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ApiPod, startApiPod } from '../support/pods/api-pod.js'

const folder = fileURLToPath(new URL('typed', import.meta.url))

/** What a script of the nested package writes, to both of its outputs; rejects if it fails. */
async function npm(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('npm', [...args], { cwd: folder })
  return `${stdout}${stderr}`
}

/** Imports a module of the nested package by its path: the types of this package do not include what is generated. */
async function programOf(file: string, name: string): Promise<(base: string, token: string) => Promise<string[]>> {
  return (await import(`${folder}/${file}`))[name]
}

let pod: ApiPod
let base: string
beforeAll(async () => {
  await rm(`${folder}/generated`, { recursive: true, force: true })
  expect(await npm('ci', '--no-audit', '--no-fund')).not.toMatch(/warn/i)
  pod = await startApiPod()
  base = await pod.app.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(() => pod.close())

it.each(['openapi-typescript', 'hey-api'])('%s generates a client without a warning', async (generator) => {
  expect(await npm('run', `generate:${generator}`)).not.toMatch(/warn|error|fail|unsupported|missing/i)
})

it('both clients, and the programs that use them, pass the strict type check', async () => {
  expect(await npm('run', '--silent', 'check')).toBe('')
})

it('openapi-fetch creates a post, lists the stream, comments, and branches on a reason', async () => {
  const { ann } = await pod.people('ann')
  const program = await programOf('with-openapi-fetch.ts', 'useOpenapiFetch')

  expect(await program(base, ann.token)).toEqual([
    expect.stringMatching(/^post Typed hello by /),
    'comment Typed comment',
    'aspects_required: aspects',
  ])
})

it('the client of hey-api does the same', async () => {
  const { ben } = await pod.people('ben')
  const program = await programOf('with-hey-api.ts', 'useHeyApi')

  expect(await program(base, ben.token)).toEqual([
    expect.stringMatching(/^post Typed hello by /),
    'comment Typed comment',
    'aspects_required: aspects',
    'post_not_found',
  ])
})
