import { REMOTE_LIMITS } from '../../src/federation/remote-pod/limits.js'
import { RemotePodError } from '../../src/federation/remote-pod/remote-pod-error.js'
import type { RemoteResponse } from '../../src/services/remote-pod-client.js'
import type { LookupServices } from '../../src/services/services.js'

/** The response, or the reason for its absence. */
export type ProbeResult = { readonly response: RemoteResponse } | { readonly fault: string }

/** Sends a request as other pods do; any status is a response. */
export async function sendRequest({ remotePods }: LookupServices, url: string, accept = '*/*'): Promise<ProbeResult> {
  try {
    const { redirects, discoveryBytes: maxBytes } = REMOTE_LIMITS
    return { response: await remotePods.get(url, { accept, maxBytes, redirects, mayUsePlain: true }) }
  } catch (error) {
    if (error instanceof RemotePodError) return { fault: error.message }
    throw error
  }
}

export function isSuccess({ status }: RemoteResponse): boolean {
  return status >= 200 && status < 300
}
