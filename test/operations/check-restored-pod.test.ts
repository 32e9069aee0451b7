import { expect, it } from 'vitest'
import { requestWhileBusy } from '../../src/operations/backup/check-restored-pod.js'

it('a restored copy on a busy machine is requested again, and is no fault of the backup', async () => {
  const requestWith = (statuses: number[]) =>
    requestWhileBusy(async () => statuses.shift() ?? 200, { attempts: 3, pauseMs: 0 })

  expect(await requestWith([503, 503, 200])).toBe(200)
  expect(await requestWith([503, 404])).toBe(404)
  expect(await requestWith([503, 503, 503, 200])).toBe(503)
})
