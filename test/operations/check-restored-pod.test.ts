import { expect, it } from 'vitest'
import { askWhileBusy } from '../../src/operations/backup/check-restored-pod.js'

it('a restored copy on a busy machine is asked again, and not reported as a fault of the backup', async () => {
  const askFor = (statuses: number[]) => askWhileBusy(async () => statuses.shift() ?? 200, { attempts: 3, pauseMs: 0 })

  expect(await askFor([503, 503, 200])).toBe(200)
  expect(await askFor([503, 404])).toBe(404)
  expect(await askFor([503, 503, 503, 200])).toBe(503)
})
