import type { KeyObject } from 'node:crypto'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { isRelayable, type ReceivedEntity } from '../../protocol/entities/registry.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { InnerSignature, Opened } from '../../protocol/envelopes/open-envelope.js'
import { homeOf, placeOf } from '../discovery/pod-location.js'
import type { Arrival, IgnoredMessage, InboundMessage, RejectedMessage, StepResult, WaitingMessage } from './batch.js'
import { type DecryptedMessage, decryptEnvelopes } from './decrypt-envelopes.js'
import { findSigners, type Signer } from './find-signers.js'
import type { StorableEntity } from './store/storable-entity.js'

/**
 * Decrypts private messages, finds the keys of the signers, opens all envelopes in a thread, and keeps what
 * can be stored and was asked for.
 */
export async function openBatch(
  pod: Pod,
  messages: readonly InboundMessage[],
): Promise<StepResult<Arrival<StorableEntity>>> {
  const { decrypted, rejected: undecipherable } = await decryptEnvelopes(pod, messages)
  const { opened, signers } = await openAll(pod, decrypted)
  const ready: Arrival<StorableEntity>[] = []
  const waiting: WaitingMessage[] = []
  const rejected: RejectedMessage[] = [...undecipherable]
  const ignored: IgnoredMessage[] = []
  const blockedHomes = await findBlockedHomes(pod, opened.values())
  for (const each of decrypted) {
    const { message, recipient } = each
    const result = opened.get(each)
    switch (result?.state) {
      case 'open': {
        const { sender, entity, signature } = result
        const signer = signers.get(sender.toLowerCase())
        if (signer === undefined) throw new Error('An envelope was verified without a key.')
        const author = signers.get(entity.author)
        const firstSigned = firstSignedBy(entity, signature, [signer, author])
        const arrival = { message, sender, signer, author, entity, signature, firstSigned, recipient }
        if (!isStorable(arrival)) {
          rejected.push({
            message,
            arrival,
            fault: 'UnknownEntity',
            reason: `nothing is done here with a ${entity.type}`,
          })
        } else if (!isWanted(message, entity)) {
          rejected.push({
            message,
            arrival,
            fault: 'NotFetchable',
            reason: `a ${entity.type} came that was not asked for`,
          })
        } else {
          ready.push(arrival)
        }
        break
      }
      case 'rejected':
        rejected.push({ message, fault: result.fault, reason: result.reason })
        break
      case 'needs_key':
        if (signers.has(result.of)) {
          rejected.push({ message, fault: 'SenderKeyNotFound', reason: `the key of ${result.of} cannot be used` })
        } else {
          const { of, sender = of } = result
          if (blockedHomes.has(of)) {
            ignored.push({ message, reason: `the pod of ${of} is blocked` })
            break
          }
          const signed = result.sender !== undefined
          waiting.push({ message, waitsFor: `person:${of}`, fault: 'DiscoveryFailed', askAt: of, sender, signed })
        }
        break
      case undefined:
        throw new Error('A message was not opened.')
    }
  }
  return { ready, waiting, rejected, ignored }
}

/** The unknown signers and authors whose pods the operator blocks: nobody is asked about them. */
async function findBlockedHomes({ db }: Pick<Pod, 'db'>, opened: Iterable<Opened>): Promise<ReadonlySet<string>> {
  const unknown = new Set([...opened].flatMap((result) => (result.state === 'needs_key' ? [result.of] : [])))
  const places = [...unknown].flatMap((address) => {
    const home = homeOf(address)
    return home === undefined ? [] : [{ address, ...placeOf(home) }]
  })
  return new Set(await OtherPod.findBlockedAddresses(db, places))
}

/**
 * The key that an envelope was verified with may be that of another person: only an entity that names its signer as its author
 * proves that they have the key.
 */
function firstSignedBy(
  entity: ReceivedEntity,
  signature: InnerSignature,
  [signer, author]: readonly [Signer, Signer | undefined],
): readonly string[] {
  const isSigned = author !== undefined && (author === signer || (isRelayable(entity) && signature === 'valid'))
  return isSigned && !author.isProven ? [author.address] : []
}

/** What looking from outside has overlooked is found out by opening: then there is a second round, or a third. */
async function openAll(pod: Pod, envelopes: readonly DecryptedMessage[]) {
  const opened = new Map<DecryptedMessage, Opened>()
  const signers = new Map<string, Signer>()
  const asked = new Set<string>()
  let closed = envelopes
  let addresses = new Set(envelopes.flatMap(({ envelope }) => claimedSigners(envelope)))
  while (closed.length > 0) {
    for (const signer of await findSigners(pod.db, [...addresses])) signers.set(signer.address, signer)
    for (const address of addresses) asked.add(address)
    const round = closed.map(({ envelope, message }) => ({ envelope, receivedAt: message.acceptedAt }))
    const results = await pod.crypto.openEnvelopes(round, keysOf(signers))
    for (const [index, each] of closed.entries()) {
      const result = results[index]
      if (result !== undefined) opened.set(each, result)
    }
    const missing = closed.flatMap((each) => {
      const result = opened.get(each)
      return result?.state === 'needs_key' && !asked.has(result.of) ? [{ each, address: result.of }] : []
    })
    closed = missing.map(({ each }) => each)
    addresses = new Set(missing.map(({ address }) => address))
  }
  return { opened, signers }
}

function claimedSigners(envelope: string): string[] {
  const { sender, author } = peekEnvelope(envelope)
  return [sender, author].filter((address) => address !== undefined)
}

function keysOf(signers: ReadonlyMap<string, Signer>): ReadonlyMap<string, KeyObject> {
  const keys = new Map<string, KeyObject>()
  for (const { address, key } of signers.values()) if (key !== undefined) keys.set(address, key)
  return keys
}

/** Events are read and verified, and end as `UnknownEntity`. */
function isStorable(arrival: Arrival): arrival is Arrival<StorableEntity> {
  const { type } = arrival.entity
  return type !== 'event' && type !== 'event_participation'
}

/** An answer must be what was asked for: otherwise a pod could slip in what nobody here wanted. */
function isWanted({ wanted }: InboundMessage, entity: ReceivedEntity): boolean {
  if (wanted === undefined) return true
  if (wanted.author !== undefined && wanted.author !== entity.author) return false
  if (wanted.type === 'comment') return entity.type === 'comment' && entity.guid === wanted.guid
  if (wanted.type === 'poll') return entity.type === 'status_message' && entity.poll?.guid === wanted.guid
  return (entity.type === 'status_message' || entity.type === 'reshare') && entity.guid === wanted.guid
}
