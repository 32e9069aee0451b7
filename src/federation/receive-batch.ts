import type { Pod } from '../pod.js'
import { peekEnvelope } from '../protocol/magic-envelope.js'
import { authoriseBatch } from './authorise-batch.js'
import type { Message, Over, Sorted, Wrong } from './batch.js'
import { openBatch } from './open-batch.js'
import { resolveBatch } from './resolve-batch.js'
import { storeBatch } from './store-batch.js'

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
