import { writeEntity } from '../../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { Relayable } from '../../../src/protocol/entities/relayables.js'
import { writeEncryptedEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { signMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { signRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import type { FakePerson } from './fake-pods.js'

/** The magic envelope in which the person sends the entity. */
export function envelopeOf({ address, privateKey }: FakePerson, entity: Entity): string {
  return signMagicEnvelope(writeEntity(entity), address, privateKey)
}

/** The envelope, encrypted for the owner of this public key. */
export function encryptEnvelopeFor(publicKey: string, envelope: string): string {
  const key = readPublicKey(publicKey)
  if (key === undefined) throw new Error('The recipient has no usable key.')
  return writeEncryptedEnvelope(envelope, key)
}

/** The relayable with the signature of its author. */
export function signedBy<Signed extends Relayable>({ privateKey }: FakePerson, relayable: Signed): Signed {
  return { ...relayable, author_signature: signRelayable(relayable, privateKey) }
}
