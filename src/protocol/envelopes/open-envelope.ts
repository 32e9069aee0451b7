import type { KeyObject } from 'node:crypto'
import { isRelayable, type ReceivedEntity, readEntity } from '../entities/registry.js'
import { ProtocolError, type ProtocolFault } from '../errors.js'
import { migrationOf, verifyMigration } from '../signatures/migration-signature.js'
import { verifyRelayable } from '../signatures/relayable-signature.js'
import { readXml } from '../xml/xml.js'
import { readMagicEnvelope, verifyMagicEnvelope } from './magic-envelope.js'

/** Public keys by address in lower case: of everybody who signed something in a batch, as far as they are known. */
export type KnownKeys = ReadonlyMap<string, KeyObject>

/** Whether a relayable or a migration carries the signature that it may need beside that of its envelope. */
export type InnerSignature = 'valid' | 'wrong' | 'absent'

/** What became of one envelope. Plain data, because an error loses its fields on the way out of a thread. */
export type Opened =
  | {
      readonly state: 'open'
      readonly sender: string
      readonly entity: ReceivedEntity
      readonly signature: InnerSignature
    }
  | {
      readonly state: 'needs_key'
      readonly of: string
      /** Who has signed the envelope: set when the missing key is that of another signature within. */
      readonly sender?: string
    }
  | { readonly state: 'wrong'; readonly fault: ProtocolFault; readonly reason: string }

/**
 * The whole way from text to entity: reads the envelope, verifies it, reads what is in it, verifies what is signed in there. Who may send
 * what is not asked here, for that needs to know what the entity refers to (sender-rules.ts).
 */
export function openEnvelope(envelope: string, keys: KnownKeys, receivedAt: Date): Opened {
  try {
    return open(envelope, keys, receivedAt)
  } catch (error) {
    if (error instanceof ProtocolError) return { state: 'wrong', fault: error.fault, reason: error.message }
    throw error
  }
}

function open(text: string, keys: KnownKeys, receivedAt: Date): Opened {
  const envelope = readMagicEnvelope(text)
  const { sender, payload } = envelope
  const owner = sender.toLowerCase()
  const key = keys.get(owner)
  if (key === undefined) return { state: 'needs_key', of: owner }
  verifyMagicEnvelope(envelope, key)

  const entity = readEntity(readXml(payload, 'InvalidPayload'), receivedAt)
  const signer = signerOf(entity)
  if (signer === undefined) return { state: 'open', sender, entity, signature: 'absent' }
  const signerKey = keys.get(signer)
  if (signerKey === undefined) return { state: 'needs_key', of: signer, sender }
  return { state: 'open', sender, entity, signature: isSigned(entity, signerKey) ? 'valid' : 'wrong' }
}

/** Whose signature the entity carries; `undefined`: none. */
function signerOf(entity: ReceivedEntity): string | undefined {
  if (entity.type === 'account_migration') return entity.signature ? migrationOf(entity).witness : undefined
  return isRelayable(entity) && entity.author_signature ? entity.author : undefined
}

function isSigned(entity: ReceivedEntity, signerKey: KeyObject): boolean {
  if (entity.type === 'account_migration') return verifyMigration(entity, signerKey)
  return isRelayable(entity) && verifyRelayable(entity, signerKey)
}
