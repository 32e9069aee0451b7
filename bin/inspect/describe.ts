import type { EntityKey } from '../../src/jobs/waiting/entity-key.js'
import type { References } from '../../src/protocol/envelopes/sender-rules.js'
import type { EnvelopeDryRun, StepName } from './dry-run.js'
import type { Effects } from './effects.js'

/** The result of a step, in words. */
export interface StepReport {
  readonly step: StepName | 'fetch' | 'follow up'
  readonly message: string
}

/** All steps that the message reached, with the reason where it stopped. */
export function describeSteps(run: EnvelopeDryRun): readonly StepReport[] {
  const { stoppedAt, resolved, effects } = run
  const steps: StepReport[] = [{ step: 'open', message: stoppedAt === 'open' ? reasonOfStop(run) : openedText(run) }]
  if (stoppedAt === 'open') return steps
  const references = stoppedAt === 'resolve' ? reasonOfStop(run) : referencesText(resolved?.references ?? {})
  steps.push({ step: 'resolve', message: references })
  if (stoppedAt === 'resolve') return steps
  steps.push({ step: 'authorise', message: stoppedAt === 'authorise' ? reasonOfStop(run) : authorisedText(run) })
  if (stoppedAt === 'authorise') return steps
  steps.push({ step: 'store', message: stoppedAt === 'store' ? reasonOfStop(run) : storedText(effects) })
  for (const message of followUpTexts(effects)) steps.push({ step: 'follow up', message })
  return steps
}

/** The result for the message, in one sentence. */
export function describeResult({ rejected, ignored, waiting, effects }: EnvelopeDryRun): string {
  if (rejected !== undefined) return `It would be refused: ${rejected.fault}, ${rejected.reason}.`
  if (waiting !== undefined) return `It would wait for ${nameOf(waiting.waitsFor)}.`
  if (ignored !== undefined || effects.tables.length === 0) return 'It would change nothing.'
  return 'It would be stored.'
}

function reasonOfStop({ rejected, ignored, waiting }: EnvelopeDryRun): string {
  if (rejected !== undefined) return `${rejected.fault}: ${rejected.reason}.`
  if (ignored !== undefined) return `The message is ignored: ${ignored.reason}.`
  if (waiting === undefined) return 'The message was stopped.'
  const { waitsFor, fetchFrom, fallbackFetchFrom, fault, maxWaitSeconds } = waiting
  const sources = [fetchFrom, fallbackFetchFrom].filter((address) => address !== undefined)
  return [
    `${capitalised(nameOf(waitsFor))} is unknown.`,
    sources.length === 0
      ? 'It cannot be fetched; its author must send it.'
      : `It would be fetched from the pod of ${sources.join(', then from that of ')}.`,
    `If it does not arrive${maxWaitSeconds === undefined ? '' : ` within ${Math.round(maxWaitSeconds / 60)} minutes`}: ${fault}.`,
  ].join(' ')
}

function openedText({ arrival }: EnvelopeDryRun): string {
  if (arrival === undefined) throw new Error('An opened message has no arrival.')
  const { entity, sender, recipient, signature } = arrival
  const kind = 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
  return [
    recipient === undefined ? 'A public message,' : `A private message for ${recipient.address},`,
    `with a valid signature of ${sender}: ${kind} by ${entity.author}.`,
    ...(signature === 'absent' ? [] : [`The signature inside is ${signature}.`]),
  ].join(' ')
}

function referencesText({ root, target, conversation }: References): string {
  if (root !== undefined) {
    const home = root.local ? 'local' : 'remote'
    return `It refers to a ${root.public ? 'public' : 'private'} post of ${root.author}, a ${home} person.`
  }
  if (target !== undefined) {
    const under = target.root === undefined ? '' : `, under a post of ${target.root.author}`
    return `The target is stored; its author is ${target.author}${under}.`
  }
  if (conversation !== undefined) return `It is part of a conversation of ${conversation.participants.join(', ')}.`
  return 'It refers to no other entity.'
}

function authorisedText({ arrival }: EnvelopeDryRun): string {
  return `${arrival?.sender} is allowed to send this.`
}

function storedText({ tables }: Effects): string {
  if (tables.length === 0) return 'It is stored already.'
  const changes = tables.map(({ table, inserted, updated, deleted }) => {
    const counts = Object.entries({ new: inserted, changed: updated, deleted }).filter(([, count]) => count > 0)
    return `${table} (${counts.map(([word, count]) => `${count} ${word}`).join(', ')})`
  })
  return `Rows: ${changes.join(', ')}.`
}

function followUpTexts({ notifications, outgoing, jobs }: Effects): readonly string[] {
  return [
    ...notifications.map(({ user, type }) => `${user} is notified: ${type}.`),
    ...outgoing.map(
      ({ record, guid, verb, deliveries }) => `${verb} of ${record} ${guid} is sent: ${deliveries} deliveries.`,
    ),
    ...jobs.map(({ name, data }) => `Job enqueued: ${name} ${JSON.stringify(data)}.`),
  ]
}

function nameOf(entityKey: EntityKey): string {
  const [kind, ...rest] = entityKey.split(':')
  return `the ${kind} ${rest.join(':')}`
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
