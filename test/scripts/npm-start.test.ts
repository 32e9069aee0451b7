import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { isAlive, makePreparedFolder } from '../bin/program.js'

const project = fileURLToPath(new URL('../..', import.meta.url))

it('npm start stops all processes of the pod when only npm gets the signal', { timeout: 180_000 }, async () => {
  const folder = await makePreparedFolder()
  const npm = spawn('npm', ['start', '--silent', '--', '--json'], {
    cwd: project,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', ADMIN_LISTEN: '', DATA_DIR: folder.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(npm, 'close')
  let pids: readonly number[] = []
  for await (const line of createInterface({ input: npm.stdout })) {
    if (!line.startsWith('{"ready"')) continue
    pids = Object.values(JSON.parse(line).pids)
    npm.kill('SIGTERM')
  }

  expect(await ended).toEqual([0, null])
  expect(pids).toHaveLength(3)
  expect(pids.filter(isAlive)).toEqual([])
  await folder.remove()
})
