import type { ProbeStep } from '../persistence/models/remote-pod.js'
import type { PodClock } from '../persistence/operations/processes.js'

/** All requests to other pods. A response with any status is returned; any other outcome throws a RemotePodError. */
export interface RemotePodClient {
  get(url: string | URL, options: GetOptions): Promise<RemoteResponse>
  /** Follows no redirect and reads no body. */
  post(
    url: string | URL,
    contentType: string,
    body: string | Buffer,
    options?: RequestOptions,
  ): Promise<DeliveryResponse>
  /** Connects step by step, as a request does. Isolated pods and those of tests may be without it. */
  probe?(url: string | URL): Promise<readonly ProbeStep[]>
  /** The clocks of the pods that have responded last. */
  readClock?(): PodClock | undefined
}

interface RequestOptions {
  /** Milliseconds in all, redirects and waiting in the queue included. */
  readonly deadline?: number
  readonly signal?: AbortSignal | undefined
}

export interface GetOptions extends RequestOptions {
  readonly accept?: string
  /** Limit of the body, both compressed and decompressed. */
  readonly maxBytes: number
  /** Number of redirects to follow; one more is an error. */
  readonly redirects?: number
  /** A redirect to another host is an error. */
  readonly mustStayOnHost?: boolean
  /** Falls back to http if https fails and plain http is allowed for the host. */
  readonly mayUsePlain?: boolean
}

export interface RemoteResponse {
  readonly status: number
  /** Where the response came from, after redirects. */
  readonly url: URL
  readonly contentType: string | undefined
  /** Empty unless the status is 2xx. */
  readonly body: Buffer
}

export interface DeliveryResponse {
  readonly status: number
  /** Seconds. */
  readonly retryAfter: number | undefined
}
