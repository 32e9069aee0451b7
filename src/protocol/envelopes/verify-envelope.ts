import type { KeyObject } from 'node:crypto'
import { readEntity } from '../entities/entity-xml.js'
import { isRelayable, type ReceivedEntity } from '../entities/registry.js'
import { ProtocolError, type ProtocolFault } from '../errors.js'
import { readMigration, verifyMigration } from '../signatures/migration-signature.js'
import { verifyRelayable } from '../signatures/relayable-signature.js'
import { readXml } from '../xml/xml.js'
import { readMagicEnvelope, verifyMagicEnvelope } from './magic-envelope.js'

/** Public keys of the known signers of a batch, by address in lower case. */
export type KnownKeys = ReadonlyMap<string, KeyObject>

/** The state of the signature inside a relayable or migration, in addition to that of the envelope. */
export type InnerSignature = 'valid' | 'invalid' | 'absent'

/** The result of reading and verifying an envelope. Plain data, because errors lose their fields between threads. */
export type EnvelopeVerification =
  | {
      readonly state: 'verified'
      readonly sender: string
      readonly entity: ReceivedEntity
      readonly signature: InnerSignature
    }
  | {
      readonly state: 'needs_key'
      readonly keyOwner: string
      /** The verified sender, set when the missing key is that of the inner signature. */
      readonly sender?: string
    }
  | { readonly state: 'rejected'; readonly fault: ProtocolFault; readonly reason: string }

/**
 * Reads and verifies the envelope, reads the entity and verifies its inner signature. Whether the sender may send the entity is
 * decided later, because that depends on the entities it refers to (sender-rules.ts).
 */
export function verifyEnvelope(envelope: string, keys: KnownKeys, receivedAt: Date): EnvelopeVerification {
  try {
    return readAndVerify(envelope, keys, receivedAt)
  } catch (error) {
    if (error instanceof ProtocolError) return { state: 'rejected', fault: error.fault, reason: error.message }
    throw error
  }
}

function readAndVerify(text: string, keys: KnownKeys, receivedAt: Date): EnvelopeVerification {
  const envelope = readMagicEnvelope(text)
  const { sender, payload } = envelope
  const owner = sender.toLowerCase()
  const key = keys.get(owner)
  if (key === undefined) return { state: 'needs_key', keyOwner: owner }
  verifyMagicEnvelope(envelope, key)

  const entity = readEntity(readXml(payload, 'InvalidPayload'), receivedAt)
  const signer = signerOf(entity)
  if (signer === undefined) return { state: 'verified', sender, entity, signature: 'absent' }
  const signerKey = keys.get(signer)
  if (signerKey === undefined) return { state: 'needs_key', keyOwner: signer, sender }
  return { state: 'verified', sender, entity, signature: isSigned(entity, signerKey) ? 'valid' : 'invalid' }
}

/** The author of the inner signature; `undefined`: there is none. */
function signerOf(entity: ReceivedEntity): string | undefined {
  if (entity.type === 'account_migration') return entity.signature ? readMigration(entity).witness : undefined
  return isRelayable(entity) && entity.author_signature ? entity.author : undefined
}

function isSigned(entity: ReceivedEntity, signerKey: KeyObject): boolean {
  if (entity.type === 'account_migration') return verifyMigration(entity, signerKey)
  return isRelayable(entity) && verifyRelayable(entity, signerKey)
}
