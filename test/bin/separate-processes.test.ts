import { afterAll, beforeAll, expect, it } from 'vitest'
import { makePlace, type Place } from './place.js'
import { pod, type Settings, start, statusOf } from './program.js'

let place: Place
let settings: Settings

beforeAll(async () => {
  place = await makePlace()
  settings = place.settings
})
afterAll(() => place.remove())

it('web and worker run separately; a worker that stops affects no other process', { timeout: 180_000 }, async () => {
  const web = start(['web', '--json'], settings)
  const worker = start(['worker', '--json', '--queues', 'notify,maintenance'], settings)
  const [{ address }] = await Promise.all([
    web.logged((line) => line.name === 'web' && line.msg === 'web process started'),
    worker.logged((line) => line.name === 'worker' && line.msg === 'worker started'),
  ])
  const { queues } = JSON.parse((await pod(['status', '--json'], settings)).stdout)
  expect(queues).toMatchObject({ notify: { workers: 1 }, maintenance: { workers: 1 }, inbound: { workers: 0 } })

  worker.child.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(await statusOf(`${address}/health/ready`)).toBe(200)

  web.child.kill('SIGTERM')
  expect(await web.ended).toBe(0)
})
