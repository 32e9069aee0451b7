import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import type { ForwardedEnvelope } from '../../jobs/definitions.js'
import { Person } from '../../persistence/models/person.js'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { DELIVERY_LIMITS } from './limits.js'

type Forwarding = Pick<Pod, 'db' | 'remote' | 'log' | 'crypto' | 'secrets'>

/** Sends an envelope of another author to a pod, byte by byte. A refusal of the pod ends the job, any other failure is retried. */
export async function forwardEnvelope(pod: Forwarding, forwarded: ForwardedEnvelope): Promise<void> {
  const { db, remote, log } = pod
  const other = await OtherPod.query(db).findById(forwarded.podId)
  const origin = other === undefined || other.blockedAt !== null ? undefined : podOrigin(other)
  if (origin === undefined) return
  const delivery = await deliveryOf(pod, forwarded)
  if (delivery === undefined) return
  const { status } = await remote.post(`${origin}${delivery.path}`, delivery.contentType, delivery.body, {
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
  pod: Forwarding,
  { envelope, encryptedFor }: ForwardedEnvelope,
): Promise<Delivery | undefined> {
  if (encryptedFor === undefined) {
    return { path: '/receive/public', contentType: 'application/magic-envelope+xml', body: envelope }
  }
  const recipientKey = await loadPrivateKey(pod, encryptedFor.oldId)
  const [decrypted] = await pod.crypto.openEncryptedEnvelopes([{ encrypted: envelope, recipientKey }])
  const newest = await Person.query(pod.db).findById(encryptedFor.newestId)
  const key = newest && readPublicKey(newest.publicKey)
  if (newest === undefined || key === undefined || decrypted === undefined) return undefined
  const [bodies] = await pod.crypto.encryptEnvelopes([{ envelope: decrypted, recipientKeys: [key] }])
  const [body] = bodies ?? []
  if (body === undefined) return undefined
  return { path: `/receive/users/${newest.guid}`, contentType: 'application/json', body }
}
