import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import type { ForwardedEnvelope } from '../../jobs/definitions.js'
import { Person } from '../../persistence/models/person.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Services } from '../../services/services.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { DELIVERY_LIMITS } from './limits.js'

type ForwardingDependencies = Pick<Services, 'db' | 'crypto' | 'remotePods' | 'secrets' | 'log'>

/** Sends an unchanged envelope of another author to a pod. A refusal of the pod ends the job, any other failure is retried. */
export async function forwardEnvelope(services: ForwardingDependencies, forwarded: ForwardedEnvelope): Promise<void> {
  const { db, remotePods, log } = services
  const pod = await RemotePod.query(db).findById(forwarded.podId)
  const origin = pod === undefined || pod.blockedAt !== null ? undefined : podOrigin(pod)
  if (origin === undefined) return
  const delivery = await deliveryOf(services, forwarded)
  if (delivery === undefined) return
  const { status } = await remotePods.post(`${origin}${delivery.path}`, delivery.contentType, delivery.body, {
    deadline: DELIVERY_LIMITS.exchangeMs,
  })
  if (status >= 500) throw new Error(`${origin} answered a forwarded message with status ${status}.`)
  if (status >= 400) log.info({ pod: origin, status }, 'forwarded message refused')
}

interface Delivery {
  readonly path: string
  readonly contentType: string
  readonly body: string
}

/** Undefined: the envelope cannot be decrypted, or not be encrypted for the new identity. */
async function deliveryOf(
  services: ForwardingDependencies,
  { envelope, encryptedFor }: ForwardedEnvelope,
): Promise<Delivery | undefined> {
  if (encryptedFor === undefined) {
    return { path: '/receive/public', contentType: 'application/magic-envelope+xml', body: envelope }
  }
  const recipientKey = await loadPrivateKey(services, encryptedFor.oldId)
  const [decrypted] = await services.crypto.decryptEnvelopes([{ encrypted: envelope, recipientKey }])
  const newest = await Person.query(services.db).findById(encryptedFor.newestId)
  const key = newest && readPublicKey(newest.publicKey)
  if (newest === undefined || key === undefined || decrypted === undefined) return undefined
  const [bodies] = await services.crypto.encryptEnvelopes([{ envelope: decrypted, recipientKeys: [key] }])
  const [body] = bodies ?? []
  if (body === undefined) return undefined
  return { path: `/receive/users/${newest.guidAtPod ?? newest.guid}`, contentType: 'application/json', body }
}
