import type { Knex } from 'knex'
import { raw } from 'objection'
import { messageOf } from '../../errors/thrown.js'
import { LOOKUP_LIMITS, REMOTE_LIMITS } from '../../limits.js'
import { Pod as OtherPod, type PodHost, type PodStatus } from '../../persistence/models/pod.js'
import { reviveDeliveriesOfPod } from '../../persistence/outbound/due-deliveries.js'
import type { Pod, RemoteAnswer } from '../../pod/pod.js'
import type { NodeInfo } from '../../protocol/discovery/node-info.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { podStatusOf } from '../outbound/pod-health.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { readRemoteDocument } from './read-document.js'

/** How a pod is, as far as a look from outside tells. */
export interface PodCheck {
  readonly status: Exclude<PodStatus, 'unchecked'>
  /** Null: all is well. */
  readonly error: string | null
  /** Where its front page answered, after redirects; undefined: it did not. */
  readonly frontPage?: URL
  readonly nodeInfo?: NodeInfo
}

type Asking = Pick<Pod, 'remote' | 'crypto'>

/** Looks at the front page, and at what the pod says it runs. Throws a RemotePodError only where it is we who are too busy. */
export async function checkPod(pod: Asking, origin: string): Promise<PodCheck> {
  let frontPage: URL
  try {
    frontPage = await askFrontPage(pod, origin)
  } catch (error) {
    return { status: statusOf(error), error: messageOf(error) }
  }
  try {
    return { status: 'no_errors', error: null, frontPage, nodeInfo: await askNodeInfo(pod, origin) }
  } catch (error) {
    if (isOurFault(error)) throw error
    return { status: 'version_failed', error: messageOf(error), frontPage }
  }
}

/** Keeps the outcome in the row of the pod, and revives what was given up when it is back; undefined: nobody of it has been met yet. */
export async function savePodCheck(
  db: Knex,
  place: PodHost,
  check: PodCheck,
  now: Date,
): Promise<OtherPod | undefined> {
  const isOffline = check.status !== 'no_errors' && check.status !== 'version_failed'
  const known = await OtherPod.query(db).findOne({ host: place.host, port: place.port }).select('offlineSince')
  const [noted] = await OtherPod.query(db)
    .where({ host: place.host, port: place.port })
    .patch({
      status: check.status,
      lastError: check.error,
      checkedAt: now,
      checkWanted: false,
      offlineSince: isOffline ? raw('coalesce(offline_since, ?::timestamptz)', [now]) : null,
      redirects: 0,
      // Its inbox has not been asked: the next delivery is a try, and the rest waits for how that goes.
      ...(!isOffline && { lastSuccessAt: now, nextTryAt: null }),
      ...(check.frontPage?.protocol === 'https:' && { ssl: true }),
      ...(check.nodeInfo && { software: check.nodeInfo.software, softwareVersion: check.nodeInfo.version }),
    })
    .returning('*')
  const isBack = !isOffline && known !== undefined && known.offlineSince !== null
  if (isBack && noted !== undefined) await reviveDeliveriesOfPod(db, noted.id)
  return noted
}

/** Where it answered, without leaving the host. */
async function askFrontPage({ remote }: Asking, origin: string): Promise<URL> {
  const answer = await remote.get(`${origin}/`, {
    accept: 'text/html',
    maxBytes: REMOTE_LIMITS.fetchBytes,
    redirects: LOOKUP_LIMITS.frontPageRedirects,
    sameHost: true,
    orPlain: true,
    deadline: LOOKUP_LIMITS.frontPageMs,
  })
  return good(answer).url
}

async function askNodeInfo(pod: Asking, origin: string): Promise<NodeInfo> {
  const ask = async (url: string | URL) => {
    const answer = await pod.remote.get(url, {
      accept: 'application/json',
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      orPlain: true,
    })
    return good(answer).body.toString()
  }
  const links = await ask(`${origin}/.well-known/nodeinfo`)
  const link = await readRemoteDocument(pod, { type: 'nodeInfoLink', text: links })
  if (!isUrl(link, origin)) throw new ProtocolError('ValidationError', 'the link to the document is no address')
  const text = await ask(new URL(link, origin))
  return readRemoteDocument(pod, { type: 'nodeInfo', text })
}

function good(answer: RemoteAnswer): RemoteAnswer {
  if (answer.status >= 200 && answer.status < 300) return answer
  throw new RemotePodError('refused', `${answer.url.href} was answered with status ${answer.status}.`)
}

function statusOf(error: unknown): PodCheck['status'] {
  if (!(error instanceof RemotePodError) || error.fault === 'busy') throw error
  return podStatusOf(error.fault)
}

function isOurFault(error: unknown): boolean {
  if (error instanceof RemotePodError) return error.fault === 'busy'
  return !(error instanceof ProtocolError)
}
