import { REMOTE_LIMITS } from '../../src/federation/remote-pod/limits.js'
import { RemotePodError } from '../../src/federation/remote-pod/remote-pod-error.js'
import type { Pod, RemoteAnswer } from '../../src/pod/pod.js'

export type ProbePod = Pick<Pod, 'remote' | 'crypto'>

/** The response, or the reason for its absence. */
export type ProbeResult = { readonly answer: RemoteAnswer } | { readonly fault: string }

/** Sends a request as other pods do; any status is a response. */
export async function sendRequest({ remote }: ProbePod, url: string, accept = '*/*'): Promise<ProbeResult> {
  try {
    const { redirects, discoveryBytes: maxBytes } = REMOTE_LIMITS
    return { answer: await remote.get(url, { accept, maxBytes, redirects, mayUsePlain: true }) }
  } catch (error) {
    if (error instanceof RemotePodError) return { fault: error.message }
    throw error
  }
}

export function isGood({ status }: RemoteAnswer): boolean {
  return status >= 200 && status < 300
}
