import type { EntityKey } from '../../src/jobs/waiting/entity-key.js'
import type { TransactionEffects } from '../../src/persistence/operations/transaction-effects.js'
import type { References } from '../../src/protocol/envelopes/sender-rules.js'
import { type EnvelopeDryRun, STEPS, type StepName } from './dry-run.js'

/** The result of a step, in words. */
export interface StepReport {
  readonly step: StepName | 'fetch' | 'follow up'
  readonly message: string
}

/** All steps that the message reached, with the reason where it stopped. */
export function describeSteps(run: EnvelopeDryRun): readonly StepReport[] {
  const { stoppedAt } = run
  const passedSteps = stoppedAt === undefined ? STEPS : STEPS.slice(0, STEPS.indexOf(stoppedAt))
  const steps: StepReport[] = passedSteps.flatMap((step) => {
    const message = PASSED_TEXTS[step]?.(run)
    return message === undefined ? [] : [{ step, message }]
  })
  if (stoppedAt !== undefined) steps.push({ step: stoppedAt, message: reasonOfStop(run) })
  if (stoppedAt !== undefined && stoppedAt !== 'store') return steps
  return [...steps, ...followUpTexts(run.effects).map((message) => ({ step: 'follow up', message }) as const)]
}

/** The text of a passed step. Undefined: the step is shown only if it stops the message. */
const PASSED_TEXTS: Readonly<Record<StepName, ((run: EnvelopeDryRun) => string) | undefined>> = {
  open: openedText,
  limit: undefined,
  resolve: ({ resolved }) => referencesText(resolved?.references ?? {}),
  authorise: authorisedText,
  filter: undefined,
  store: ({ effects }) => storedText(effects),
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
    `${capitalise(nameOf(waitsFor))} is unknown.`,
    sources.length === 0
      ? 'It cannot be fetched; its author must send it.'
      : `It would be fetched from the pod of ${sources.join(', then from that of ')}.`,
    `If it does not arrive${maxWaitSeconds === undefined ? '' : ` within ${Math.round(maxWaitSeconds / 60)} minutes`}: ${fault}.`,
  ].join(' ')
}

function openedText({ verified: message }: EnvelopeDryRun): string {
  if (message === undefined) throw new Error('An opened message has no entity.')
  const { entity, sender, recipient, signature } = message
  const kind = 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
  return [
    recipient === undefined ? 'A public message,' : `A private message for ${recipient.address},`,
    `with a valid signature of ${sender}: ${kind} by ${entity.author}.`,
    ...(signature === 'absent' ? [] : [`The signature inside is ${signature}.`]),
  ].join(' ')
}

function referencesText({ threadPost, target, conversation }: References): string {
  if (threadPost !== undefined) {
    const home = threadPost.isLocal ? 'local' : 'remote'
    return `It refers to a ${threadPost.isPublic ? 'public' : 'private'} post of ${threadPost.author}, a ${home} person.`
  }
  if (target !== undefined) {
    const under = target.threadPost === undefined ? '' : `, under a post of ${target.threadPost.author}`
    return `The target is stored; its author is ${target.author}${under}.`
  }
  if (conversation !== undefined) return `It is part of a conversation of ${conversation.participants.join(', ')}.`
  return 'It refers to no other entity.'
}

function authorisedText({ verified: message }: EnvelopeDryRun): string {
  return `${message?.sender} is allowed to send this.`
}

function storedText({ tables }: TransactionEffects): string {
  if (tables.length === 0) return 'It is stored already.'
  const changes = tables.map(({ table, inserted, updated, deleted }) => {
    const counts = Object.entries({ new: inserted, changed: updated, deleted }).filter(([, count]) => count > 0)
    return `${table} (${counts.map(([word, count]) => `${count} ${word}`).join(', ')})`
  })
  return `Rows: ${changes.join(', ')}.`
}

function followUpTexts({ notifications, outgoing, jobs }: TransactionEffects): readonly string[] {
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

function capitalise(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
