import type { Knex } from 'knex'
import { raw } from 'objection'
import { messageOf } from '../../errors/thrown.js'
import { Pod as OtherPod, type PodHost, type PodStatus } from '../../persistence/models/pod.js'
import { reviveDeliveriesOfPods } from '../../persistence/outbound/due-deliveries.js'
import type { Pod, RemoteAnswer } from '../../pod/pod.js'
import type { NodeInfo } from '../../protocol/discovery/node-info.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { toPodStatus } from '../outbound/pod-health.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'
import { readRemoteDocument } from './read-document.js'

/** The result of a check of another pod. */
export interface PodCheck {
  readonly status: Exclude<PodStatus, 'unchecked'>
  /** Null: no error. */
  readonly error: string | null
  /** The URL of its front page after redirects; undefined: no answer. */
  readonly frontPage?: URL
  readonly nodeInfo?: NodeInfo
}

type RequestContext = Pick<Pod, 'remote' | 'crypto'>

/** Requests the front page and NodeInfo of a pod. Throws a RemotePodError only if this process has too many requests. */
export async function checkPod(pod: RequestContext, origin: string): Promise<PodCheck> {
  let frontPage: URL
  try {
    frontPage = await requestFrontPage(pod, origin)
  } catch (error) {
    return { status: statusOf(error), error: messageOf(error) }
  }
  try {
    return { status: 'no_errors', error: null, frontPage, nodeInfo: await requestNodeInfo(pod, origin) }
  } catch (error) {
    if (isLocalFault(error)) throw error
    return { status: 'version_failed', error: messageOf(error), frontPage }
  }
}

/** Saves the result in the row of the pod, and revives its given-up deliveries when it is back. Undefined: the pod has no row. */
export async function savePodCheck(
  db: Knex,
  place: PodHost,
  check: PodCheck,
  now: Date,
): Promise<OtherPod | undefined> {
  const isOffline = check.status !== 'no_errors' && check.status !== 'version_failed'
  const storedPod = await OtherPod.query(db).findOne({ host: place.host, port: place.port }).select('offlineSince')
  const [noted] = await OtherPod.query(db)
    .where({ host: place.host, port: place.port })
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
  const isBack = !isOffline && storedPod !== undefined && storedPod.offlineSince !== null
  if (isBack && noted !== undefined) await reviveDeliveriesOfPods(db, [noted.id], 'pod_asleep')
  return noted
}

/** Returns the URL of the front page after redirects on the same host. */
async function requestFrontPage({ remote }: RequestContext, origin: string): Promise<URL> {
  const answer = await remote.get(`${origin}/`, {
    accept: 'text/html',
    maxBytes: REMOTE_LIMITS.fetchBytes,
    redirects: DISCOVERY_LIMITS.frontPageRedirects,
    mustStayOnHost: true,
    mayUsePlain: true,
    deadline: DISCOVERY_LIMITS.frontPageMs,
  })
  return expectSuccess(answer).url
}

async function requestNodeInfo(pod: RequestContext, origin: string): Promise<NodeInfo> {
  const request = async (url: string | URL) => {
    const answer = await pod.remote.get(url, {
      accept: 'application/json',
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
    })
    return expectSuccess(answer).body.toString()
  }
  const links = await request(`${origin}/.well-known/nodeinfo`)
  const link = await readRemoteDocument(pod, { type: 'nodeInfoLink', text: links })
  if (!isUrl(link, origin)) throw new ProtocolError('ValidationError', 'the link to the document is not a URL')
  const text = await request(new URL(link, origin))
  return readRemoteDocument(pod, { type: 'nodeInfo', text })
}

function expectSuccess(answer: RemoteAnswer): RemoteAnswer {
  if (answer.status >= 200 && answer.status < 300) return answer
  throw new RemotePodError('refused', `${answer.url.href} was answered with status ${answer.status}.`)
}

function statusOf(error: unknown): PodCheck['status'] {
  if (!(error instanceof RemotePodError) || error.fault === 'busy') throw error
  return toPodStatus(error.fault)
}

function isLocalFault(error: unknown): boolean {
  if (error instanceof RemotePodError) return error.fault === 'busy'
  return !(error instanceof ProtocolError)
}
