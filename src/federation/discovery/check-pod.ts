import type { Knex } from 'knex'
import { raw } from 'objection'
import { messageOf } from '../../errors/thrown.js'
import { type PodCheckStatus, type PodHost, RemotePod } from '../../persistence/models/remote-pod.js'
import { reviveDeliveriesOfPods } from '../../persistence/outbound/dead-deliveries.js'
import type { NodeInfo } from '../../protocol/discovery/node-info.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import type { RemoteResponse } from '../../services/remote-pod-client.js'
import type { LookupServices } from '../../services/services.js'
import { toCheckStatus } from '../outbound/pod-health.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'
import { readRemoteDocument } from './read-document.js'

/** The result of a check of another pod. */
export interface PodCheck {
  readonly status: Exclude<PodCheckStatus, 'unchecked'>
  /** Null: no error. */
  readonly error: string | null
  /** The URL of its front page after redirects; undefined: no answer. */
  readonly frontPage?: URL
  readonly nodeInfo?: NodeInfo
}

/** Requests the front page and NodeInfo of a pod. Throws a RemotePodError only if this process has too many requests. */
export async function checkPod(services: LookupServices, origin: string): Promise<PodCheck> {
  let frontPage: URL
  try {
    frontPage = await requestFrontPage(services, origin)
  } catch (error) {
    return { status: statusOf(error), error: messageOf(error) }
  }
  try {
    return { status: 'no_errors', error: null, frontPage, nodeInfo: await requestNodeInfo(services, origin) }
  } catch (error) {
    if (isLocalFault(error)) throw error
    return { status: 'version_failed', error: messageOf(error), frontPage }
  }
}

/** Saves the result in the row of the pod, and revives its given-up deliveries when it is back. Undefined: the pod has no row. */
export async function savePodCheck(
  db: Knex,
  hostPort: PodHost,
  check: PodCheck,
  now: Date,
): Promise<RemotePod | undefined> {
  const isOffline = check.status !== 'no_errors' && check.status !== 'version_failed'
  return db.transaction(async (transaction) => {
    const podBefore = await RemotePod.query(transaction)
      .findOne({ host: hostPort.host, port: hostPort.port })
      .select('id', 'offlineSince')
      .forUpdate()
    if (podBefore === undefined) return undefined
    const podAfter = await RemotePod.query(transaction)
      .findById(podBefore.id)
      .patch({
        status: check.status,
        lastError: check.error,
        checkedAt: now,
        checkWanted: false,
        offlineSince: isOffline ? raw('coalesce(offline_since, ?::timestamptz)', [now]) : null,
        redirects: 0,
        // The inbox has not been tested: the next delivery is a probe, and the others wait for its result.
        ...(!isOffline && { lastSuccessAt: now, nextTryAt: null }),
        ...(check.frontPage?.protocol === 'https:' && { ssl: true }),
        ...(check.nodeInfo && { software: check.nodeInfo.software, softwareVersion: check.nodeInfo.version }),
        ...(check.nodeInfo && { adminAccount: check.nodeInfo.adminAccount }),
      })
      .returning('*')
      .first()
    const isBack = !isOffline && podBefore.offlineSince !== null
    if (isBack) await reviveDeliveriesOfPods(transaction, [podBefore.id], 'pod_asleep')
    return podAfter
  })
}

/** Returns the URL of the front page after redirects on the same host. */
async function requestFrontPage({ remotePods }: LookupServices, origin: string): Promise<URL> {
  const response = await remotePods.get(`${origin}/`, {
    accept: 'text/html',
    maxBytes: REMOTE_LIMITS.fetchBytes,
    redirects: DISCOVERY_LIMITS.frontPageRedirects,
    mustStayOnHost: true,
    mayUsePlain: true,
    deadline: DISCOVERY_LIMITS.frontPageMs,
  })
  return expectSuccess(response).url
}

async function requestNodeInfo(services: LookupServices, origin: string): Promise<NodeInfo> {
  const request = async (url: string | URL) => {
    const response = await services.remotePods.get(url, {
      accept: 'application/json',
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
    })
    return expectSuccess(response).body.toString()
  }
  const links = await request(`${origin}/.well-known/nodeinfo`)
  const link = await readRemoteDocument(services, { type: 'nodeInfoLink', text: links })
  if (!isUrl(link, origin)) throw new ProtocolError('ValidationError', 'the link to the document is not a URL')
  const text = await request(new URL(link, origin))
  return readRemoteDocument(services, { type: 'nodeInfo', text })
}

function expectSuccess(response: RemoteResponse): RemoteResponse {
  if (response.status >= 200 && response.status < 300) return response
  throw new RemotePodError('refused', `${response.url.href} was answered with status ${response.status}.`)
}

function statusOf(error: unknown): PodCheck['status'] {
  if (!(error instanceof RemotePodError) || error.fault === 'busy') throw error
  return toCheckStatus(error.fault)
}

function isLocalFault(error: unknown): boolean {
  if (error instanceof RemotePodError) return error.fault === 'busy'
  return !(error instanceof ProtocolError)
}
