import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Reloading, startReloading } from '../../src/domain/operations/start-reloading.js'

describe('settings that a process reads again', () => {
  const reload = vi.fn(async () => {})
  let reloading: Reloading

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    reload.mockReset()
    reload.mockResolvedValue()
    reloading = startReloading({ log: pino({ level: 'silent' }) }, 'settings', reload)
  })
  afterEach(() => {
    reloading.close()
    vi.useRealTimers()
  })

  it('are read at the start, and not while they are unused', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reload).toHaveBeenCalledOnce()
  })

  it('are read every three seconds while they are used, and no use waits', async () => {
    for (let second = 0; second < 30; second += 1) {
      expect(reloading.ensureFresh()).toBeUndefined()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(reload).toHaveBeenCalledTimes(11)
  })

  it('are read before a use after an idle time, once for all uses at that moment', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    let end = () => {}
    reload.mockReturnValueOnce(
      new Promise((resolve) => {
        end = resolve
      }),
    )
    const used = vi.fn()
    void reloading.ensureFresh()?.then(used)
    void reloading.ensureFresh()?.then(used)
    await vi.advanceTimersByTimeAsync(0)
    expect(used).not.toHaveBeenCalled()

    end()
    await vi.advanceTimersByTimeAsync(0)
    expect(used).toHaveBeenCalledTimes(2)
    expect(reloading.ensureFresh()).toBeUndefined()
    expect(reload).toHaveBeenCalledTimes(2)
  })

  it('stay as they are after a failure, which fails no use', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    reload.mockRejectedValueOnce(new Error('the database is away'))
    await expect(reloading.ensureFresh()).resolves.toBeUndefined()
  })
})
