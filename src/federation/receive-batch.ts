import type { WantedEntity } from '../jobs/definitions.js'
import type { Thing } from '../jobs/waiting.js'
import type { Pod } from '../pod.js'
import type { ReceivedEntity } from '../protocol/entities/registry.js'
import type { ProtocolFault } from '../protocol/errors.js'
import { peekEnvelope } from '../protocol/magic-envelope.js'
import type { InnerSignature } from '../protocol/open-envelope.js'
import { authoriseBatch } from './authorise-batch.js'
import { openBatch } from './open-batch.js'
import { resolveBatch } from './resolve-batch.js'
import type { Signer } from './signers.js'
import { storeBatch } from './store-batch.js'

/** A message on its way in. */
export interface Message {
  readonly envelope: string
  readonly acceptedAt: Date
  /** Set for one that we have asked for ourselves. */
  readonly wanted?: WantedEntity
}

/** A message whose envelope is open and whose signature fits. */
export interface Arrival<Entity extends ReceivedEntity = ReceivedEntity> {
  readonly message: Message
  /** Who signed the envelope, as it says; not always who wrote the entity. */
  readonly sender: string
  readonly signer: Signer
  readonly entity: Entity
  /** Of a relayable or a migration. */
  readonly signature: InnerSignature
}

/** It needs something that is not here. */
export interface Waiting {
  readonly message: Message
  readonly waitsFor: Thing
  /** Somebody whose pod should have it. */
  readonly askAt: string
}

/** It is wrong for good. */
export interface Wrong {
  readonly message: Message
  readonly fault: ProtocolFault
  readonly reason: string
  /** Set once it was open. */
  readonly arrival?: Arrival
}

/** Nothing is to be done about it, and nobody is at fault. */
export interface Over {
  readonly message: Message
  readonly reason: string
  readonly arrival: Arrival
}

/** Each step says which messages go on, and what becomes of the others. */
export interface Sorted<Ready> {
  readonly ready: readonly Ready[]
  readonly waiting: readonly Waiting[]
  readonly wrong: readonly Wrong[]
  readonly over: readonly Over[]
}

/**
 * Takes messages in, one or many: the steps are the same. Either all of them reach their end, or it throws and none did. Those
 * that wait are handed back.
 */
export async function receiveBatch(pod: Pod, messages: readonly Message[]): Promise<Omit<Sorted<never>, 'ready'>> {
  const opened = await openBatch(pod, messages)
  const resolved = await resolveBatch(pod, opened.ready)
  const authorised = authoriseBatch(resolved.ready)
  const stored = await storeBatch(pod, authorised.ready)

  const steps = [opened, resolved, authorised, stored]
  const waiting = steps.flatMap((step) => step.waiting)
  const wrong = steps.flatMap((step) => step.wrong)
  const over = steps.flatMap((step) => step.over)
  for (const one of wrong) pod.log.warn({ fault: one.fault, ...aboutOf(one), reason: one.reason }, 'dropped')
  for (const one of over) pod.log.debug({ ...aboutOf(one), reason: one.reason }, 'nothing to do')
  return { waiting, wrong, over }
}

/** Who and what, never what it says. Of an envelope that could not be opened nobody has proven the sender. */
function aboutOf({ message, arrival }: Wrong | Over): object {
  if (arrival === undefined) return { sender: peekEnvelope(message.envelope).sender }
  const { sender, entity } = arrival
  return { sender, entity: entity.type, guid: 'guid' in entity ? entity.guid : undefined }
}
