import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type InboundLoad, openInboundLoad } from '../../workers/inbound-load.js'

describe('work that waits while received messages are stored', () => {
  let load: InboundLoad
  let stopping: AbortController
  const start = vi.fn()

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    start.mockClear()
    load = openInboundLoad()
    stopping = new AbortController()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Returns a function that ends the storing of these messages. */
  function receive(messages: number): () => void {
    let end = () => {}
    const stored = new Promise<void>((resolve) => {
      end = resolve
    })
    void load.during(messages, () => stored)
    return end
  }

  async function wait(ms = 0): Promise<void> {
    void load.untilLow(stopping.signal).then(start)
    await vi.advanceTimersByTimeAsync(ms)
  }

  it('starts at once while no more than a batch is stored', async () => {
    receive(256)
    await wait()
    expect(start).toHaveBeenCalledOnce()

    receive(1)
    await wait(1_000)
    expect(start).toHaveBeenCalledOnce()
  })

  it('waits until a burst is stored, and not in the moment between two jobs', async () => {
    const end = receive(257)
    await wait(1_000)
    end()
    await vi.advanceTimersByTimeAsync(50)
    const endNext = receive(300)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(start).not.toHaveBeenCalled()

    endNext()
    await vi.advanceTimersByTimeAsync(150)
    expect(start).toHaveBeenCalledOnce()
  })

  it('starts after five seconds of a longer burst, together with all work that waits', async () => {
    receive(1_000)
    await wait(4_000)
    await wait(900)
    expect(start).not.toHaveBeenCalled()

    await vi.advanceTimersByTimeAsync(150)
    expect(start).toHaveBeenCalledTimes(2)
  })

  it('starts when the process ends', async () => {
    receive(1_000)
    await wait(100)
    stopping.abort()
    await vi.advanceTimersByTimeAsync(50)
    expect(start).toHaveBeenCalledOnce()
  })
})
