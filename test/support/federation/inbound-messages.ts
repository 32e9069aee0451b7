import type { InboundMessage } from '../../../src/federation/inbound/batch.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { Services } from '../../../src/services/services.js'
import type { LocalUser } from '../people/local-users.js'
import { encryptEnvelopeFor, envelopeOf } from './envelopes.js'
import type { FakePerson } from './fake-pods.js'

/** The entity in a public envelope of the signer. */
export function publicMessage(signer: FakePerson, entity: Entity, acceptedAt = new Date()): InboundMessage {
  return { envelope: envelopeOf(signer, entity), acceptedAt }
}

/** The entity as the signer would send it to one local user. */
export function privateMessage(
  signer: FakePerson,
  to: LocalUser,
  entity: Entity,
  acceptedAt = new Date(),
): InboundMessage {
  return { envelope: encryptEnvelopeFor(to.publicKey, envelopeOf(signer, entity)), recipientGuid: to.guid, acceptedAt }
}

/** The result of `receive` if every message was stored. */
export const allStored = { waiting: [], rejected: [], ignored: 0 }

/** Receives the messages as one batch; returns the messages that were not stored, by outcome. */
export async function receive(pod: Services, ...messages: readonly InboundMessage[]) {
  const { waiting, rejected, ignored } = await receiveBatch(pod, messages)
  return {
    waiting: waiting.map(({ waitsFor }) => waitsFor),
    rejected: rejected.map(({ fault }) => fault),
    ignored: ignored.length,
  }
}
