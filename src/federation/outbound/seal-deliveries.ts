import { isOurs } from '../../persistence/database/errors.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { keyOf } from '../inbound/find-signers.js'
import { sealedEnvelope } from './sealed-envelope.js'

/** A delivery, ready to be sent or with the reason why it never will be. */
export type Letter = { readonly due: DueDelivery } & (
  | { readonly path: string; readonly contentType: string; readonly body: string }
  | { readonly fault: 'internal' | 'no_key' }
)

/** Seals and encrypts what is due, message by message, in threads. What was taken back meanwhile is left out. */
export async function writeLetters(pod: Pod, due: readonly DueDelivery[]): Promise<readonly Letter[]> {
  const messages = [...new Set(due.map(({ messageId }) => messageId))]
  const letters = await Promise.all(
    messages.map((id) => {
      const ofMessage = due.filter(({ messageId }) => messageId === id)
      return lettersOf(pod, id, ofMessage).catch((error) => unwritten(pod, ofMessage, error))
    }),
  )
  const places = new Map(due.map(({ id }, place) => [id, place]))
  const placeOf = ({ due }: Letter) => places.get(due.id) ?? 0
  return letters.flat().sort((one, other) => placeOf(one) - placeOf(other))
}

async function lettersOf(pod: Pod, messageId: number, due: readonly DueDelivery[]): Promise<readonly Letter[]> {
  const uncoated = due.filter(({ isPublic, coat }) => isPublic || coat === null)
  const envelope = uncoated.length === 0 ? undefined : await sealedEnvelope(pod, messageId)
  const coats = envelope === undefined ? new Map<number, string>() : await coatsOf(pod, envelope, uncoated)
  return due.flatMap((one): Letter[] => {
    if (one.isPublic) return envelope === undefined ? [] : [publicLetter(one, envelope)]
    const coat = one.coat ?? coats.get(one.id)
    if (coat !== undefined) return [privateLetter(one, coat)]
    return envelope === undefined ? [] : [{ due: one, fault: 'no_key' }]
  })
}

function publicLetter(due: DueDelivery, body: string): Letter {
  return { due, path: '/receive/public', contentType: 'application/magic-envelope+xml', body }
}

function privateLetter(due: DueDelivery, body: string): Letter {
  const path = `/receive/users/${encodeURIComponent(due.personGuid ?? '')}`
  return { due, path, contentType: 'application/json', body }
}

/** The envelope in a coat for each person with a key, by the delivery. */
async function coatsOf(pod: Pod, envelope: string, due: readonly DueDelivery[]): Promise<Map<number, string>> {
  const recipients = due.flatMap(({ id, publicKey }) => {
    const key = publicKey === null ? undefined : keyOf(publicKey)
    return key === undefined ? [] : [{ id, key }]
  })
  if (recipients.length === 0) return new Map()
  const coats = await pod.crypto.encryptEnvelope(
    envelope,
    recipients.map(({ key }) => key),
  )
  return new Map(recipients.flatMap(({ id }, index) => (coats[index] === undefined ? [] : [[id, coats[index]]])))
}

/** What cannot be sealed keeps nothing else from being sent. */
function unwritten(pod: Pod, due: readonly DueDelivery[], error: unknown): readonly Letter[] {
  if (isOurs(error)) throw error
  pod.log.error({ err: error, message: due[0]?.messageId }, 'this could not be sealed')
  return due.map((one) => ({ due: one, fault: 'internal' }))
}
