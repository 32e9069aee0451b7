import { onTestFinished } from 'vitest'
import { openRemotePodClient, type RemotePodClientOptions } from '../../../src/federation/remote-pod/client.js'
import { type RemoteFault, RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'

const silent = { debug() {}, warn() {} }

/** An HTTP client for one test, which refuses private addresses unless the test allows them. */
export function testRemotePods(options: Partial<RemotePodClientOptions> = {}): ReturnType<typeof openRemotePodClient> {
  const pods = openRemotePodClient({ allowPrivate: 'none', userAgent: 'test/1.0', log: silent, ...options })
  onTestFinished(() => pods.close())
  return pods
}

/** The fault of a failed exchange. Success, or another error, fails the test. */
export async function faultOfExchange(exchange: Promise<unknown>): Promise<RemoteFault> {
  try {
    await exchange
  } catch (error) {
    if (error instanceof RemotePodError) return error.fault
    throw error
  }
  throw new Error('The exchange succeeded.')
}
