import type { KeyObject } from 'node:crypto'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import {
  isReceivable,
  isRelayable,
  type ReceivableEntity,
  type ReceivedEntity,
} from '../../protocol/entities/registry.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { InnerSignature, VerifiedEnvelope } from '../../protocol/envelopes/verify-envelope.js'
import { parseHomeUrl, parsePodHost } from '../discovery/pod-location.js'
import type { Arrival, IgnoredMessage, InboundMessage, RejectedMessage, StepResult, WaitingMessage } from './batch.js'
import { type DecryptedMessage, decryptEnvelopes } from './decrypt-envelopes.js'
import { findSigners, type Signer } from './find-signers.js'
import { listParts, recordKeysOf } from './received-entities.js'

/** Decrypts private messages, finds the keys of the signers, and opens all envelopes in a thread. */
export async function openEnvelopes(
  pod: Pod,
  messages: readonly InboundMessage[],
): Promise<StepResult<Arrival<ReceivableEntity>>> {
  const { decrypted, rejected: undecryptable } = await decryptEnvelopes(pod, messages)
  const { opened, signers } = await verifyEnvelopes(pod, decrypted)
  const ready: Arrival<ReceivableEntity>[] = []
  const waiting: WaitingMessage[] = []
  const rejected: RejectedMessage[] = [...undecryptable]
  const ignored: IgnoredMessage[] = []
  const ofBlockedPods = await findPeopleOfBlockedPods(pod, opened.values())
  for (const decryptedMessage of decrypted) {
    const { message, envelope, recipient } = decryptedMessage
    const result = opened.get(decryptedMessage)
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
            reason: `entities of type ${entity.type} are not stored`,
          })
        } else if (!isRequested(message, entity)) {
          rejected.push({
            message,
            arrival,
            fault: 'NotFetchable',
            reason: `the fetched ${entity.type} is not the requested entity`,
          })
        } else {
          ready.push(arrival)
        }
        break
      }
      case 'rejected':
        rejected.push({ message, envelope, fault: result.fault, reason: result.reason })
        break
      case 'needs_key':
        if (signers.has(result.of)) {
          const reason = `the key of ${result.of} cannot be used`
          rejected.push({ message, envelope, fault: 'SenderKeyNotFound', reason })
        } else {
          const { of, sender = of } = result
          if (ofBlockedPods.has(of)) {
            ignored.push({ message, envelope, reason: `the pod of ${of} is blocked` })
            break
          }
          const isSigned = result.sender !== undefined
          waiting.push({
            message,
            waitsFor: `person:${of}`,
            fault: 'DiscoveryFailed',
            fetchFrom: of,
            sender,
            signed: isSigned,
          })
        }
        break
      case undefined:
        throw new Error('A message was not opened.')
    }
  }
  return { ready, waiting, rejected, ignored }
}

/** Returns the unknown signers and authors on blocked pods; those pods get no request. */
async function findPeopleOfBlockedPods(
  { db }: Pick<Pod, 'db'>,
  opened: Iterable<VerifiedEnvelope>,
): Promise<ReadonlySet<string>> {
  const unknown = new Set([...opened].flatMap((result) => (result.state === 'needs_key' ? [result.of] : [])))
  const locations = [...unknown].flatMap((address) => {
    const home = parseHomeUrl(address)
    return home === undefined ? [] : [{ address, ...parsePodHost(home) }]
  })
  return new Set(await OtherPod.findBlockedAddresses(db, locations))
}

/**
 * Two people may share a key. So only an entity that names its signer as the author proves that the author has the key
 * (docs/decisions/0027).
 */
function firstSignedBy(
  entity: ReceivedEntity,
  signature: InnerSignature,
  [signer, author]: readonly [Signer, Signer | undefined],
): readonly string[] {
  const isSigned = author !== undefined && (author === signer || (isRelayable(entity) && signature === 'valid'))
  return isSigned && !author.hasSigned ? [author.address] : []
}

/**
 * Opens the envelopes with the keys of the signers that they claim. Opening may reveal an author whom `peekEnvelope` did not find; those
 * envelopes are opened once more, with that key.
 */
async function verifyEnvelopes(pod: Pod, envelopes: readonly DecryptedMessage[]) {
  const opened = new Map<DecryptedMessage, VerifiedEnvelope>()
  const signers = new Map<string, Signer>()
  const searched = new Set<string>()
  let unopened = envelopes
  let addresses = new Set(envelopes.flatMap(({ envelope }) => claimedSigners(envelope)))
  while (unopened.length > 0) {
    for (const signer of await findSigners(pod.db, [...addresses])) signers.set(signer.address, signer)
    for (const address of addresses) searched.add(address)
    const round = unopened.map(({ envelope, message }) => ({ envelope, receivedAt: message.acceptedAt }))
    const results = await pod.crypto.openEnvelopes(round, keysOf(signers))
    for (const [index, decrypted] of unopened.entries()) {
      const result = results[index]
      if (result !== undefined) opened.set(decrypted, result)
    }
    const missing = unopened.flatMap((each) => {
      const result = opened.get(each)
      return result?.state === 'needs_key' && !searched.has(result.of) ? [{ each, address: result.of }] : []
    })
    unopened = missing.map(({ each }) => each)
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

/** Events are parsed and verified, then rejected as `UnknownEntity`. */
function isStorable(arrival: Arrival): arrival is Arrival<ReceivableEntity> {
  return isReceivable(arrival.entity)
}

/** A fetched entity must be the requested one; otherwise a pod could store entities that no local user has subscribed to. */
function isRequested({ wanted }: InboundMessage, entity: ReceivedEntity): boolean {
  if (wanted === undefined) return true
  if (wanted.author !== undefined && wanted.author !== entity.author) return false
  if (!isReceivable(entity)) return false
  return (
    recordKeysOf(entity).includes(`${wanted.type}:${wanted.guid}`) ||
    listParts(entity).some(({ type, guid }) => type === wanted.type && guid === wanted.guid)
  )
}
