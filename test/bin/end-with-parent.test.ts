import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

const preloaded = resolve(import.meta.dirname, '../../dist/bin/start/end-with-parent.js')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'end-with-parent-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function start(program: string) {
  const file = join(folder, 'program.mjs')
  await writeFile(file, program)
  return fork(file, { execArgv: ['--import', preloaded], stdio: 'ignore' })
}

it('a process of the pod ends when its work is done, as the daily backup must', async () => {
  const child = await start('process.send({ done: true })')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('a process of the pod ends when its parent has ended', async () => {
  const child = await start('setInterval(() => undefined, 1_000); process.send({ ready: true })')
  await once(child, 'message')
  child.disconnect()
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM'])
})
