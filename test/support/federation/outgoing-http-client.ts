import { onTestFinished } from 'vitest'
import { type RemoteFault, RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'
import { openRemotePods, type RemotePodsOptions } from '../../../src/federation/remote-pod/remote-pods.js'

const silent = { debug() {}, warn() {} }

/** The client of one test; the test opens destinations explicitly. */
export function testRemotePods(options: Partial<RemotePodsOptions> = {}): ReturnType<typeof openRemotePods> {
  const pods = openRemotePods({ allowPrivate: 'none', userAgent: 'test/1.0', log: silent, ...options })
  onTestFinished(() => pods.close())
  return pods
}

/** The fault that an exchange ends with; a good end or another error fails the test. */
export async function faultOfExchange(exchange: Promise<unknown>): Promise<RemoteFault> {
  try {
    await exchange
  } catch (error) {
    if (error instanceof RemotePodError) return error.fault
    throw error
  }
  throw new Error('The exchange ended well.')
}
