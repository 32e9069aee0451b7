import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { listenForStop, type StopRequest } from '../../bin/start/stop-request.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

let before: readonly NodeJS.SignalsListener[]
let stop: StopRequest
beforeEach(() => {
  before = SIGNALS.flatMap((signal) => process.listeners(signal))
  vi.useFakeTimers({ toFake: ['performance'] })
  stop = listenForStop()
})
afterEach(() => {
  for (const signal of SIGNALS) {
    for (const listener of process.listeners(signal)) {
      if (!before.includes(listener)) process.off(signal, listener)
    }
  }
  vi.useRealTimers()
})

const signalStates = () => [stop.signal.aborted, stop.urgent.aborted]

it('a signal that arrives twice at once, for a process and for its group, is one stop request', () => {
  expect(signalStates()).toEqual([false, false])
  process.emit('SIGTERM', 'SIGTERM')
  process.emit('SIGTERM', 'SIGTERM')
  expect(signalStates()).toEqual([true, false])
})

it('a second stop request is urgent', () => {
  process.emit('SIGINT', 'SIGINT')
  vi.advanceTimersByTime(101)
  process.emit('SIGINT', 'SIGINT')
  expect(signalStates()).toEqual([true, true])
})

it('a different signal makes a stop request urgent at once', () => {
  process.emit('SIGTERM', 'SIGTERM')
  process.emit('SIGINT', 'SIGINT')
  expect(signalStates()).toEqual([true, true])
})
