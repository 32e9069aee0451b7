import type { EntityKey } from '../../src/jobs/waiting/entity-key.js'
import type { References } from '../../src/protocol/envelopes/sender-rules.js'
import type { DryRun, StepName } from './dry-run.js'
import type { Effects } from './effects.js'

/** The result of a step, in words. */
export interface ToldStep {
  readonly step: StepName | 'fetch' | 'follow up'
  readonly message: string
}

/** All steps that the message reached, with the reason where it stopped. */
export function describeSteps(run: DryRun): readonly ToldStep[] {
  const { stoppedAt, resolved, effects } = run
  const steps: ToldStep[] = [{ step: 'open', message: stoppedAt === 'open' ? stopOf(run) : openedAs(run) }]
  if (stoppedAt === 'open') return steps
  const around = stoppedAt === 'resolve' ? stopOf(run) : referencesOf(resolved?.references ?? {})
  steps.push({ step: 'resolve', message: around })
  if (stoppedAt === 'resolve') return steps
  steps.push({ step: 'authorise', message: stoppedAt === 'authorise' ? stopOf(run) : mayBeSaid(run) })
  if (stoppedAt === 'authorise') return steps
  steps.push({ step: 'store', message: stoppedAt === 'store' ? stopOf(run) : storedAs(effects) })
  for (const message of followsOf(effects)) steps.push({ step: 'follow up', message })
  return steps
}

/** The fate of the message, in one sentence. */
export function describeEnd({ rejected, ignored, waiting, effects }: DryRun): string {
  if (rejected !== undefined) return `It would be refused: ${rejected.fault}, ${rejected.reason}.`
  if (waiting !== undefined) return `It would wait for ${nameOf(waiting.waitsFor)}.`
  if (ignored !== undefined || effects.tables.length === 0) return 'It would change nothing.'
  return 'It would be stored.'
}

function stopOf({ rejected, ignored, waiting }: DryRun): string {
  if (rejected !== undefined) return `${rejected.fault}: ${rejected.reason}.`
  if (ignored !== undefined) return `Nothing is done about it: ${ignored.reason}.`
  if (waiting === undefined) return 'It goes no further.'
  const { waitsFor, fetchFrom, fallbackFetchFrom, fault, maxWaitSeconds } = waiting
  const asked = [fetchFrom, fallbackFetchFrom].filter((address) => address !== undefined)
  return [
    `${capitalised(nameOf(waitsFor))} is not known here.`,
    asked.length === 0
      ? 'It cannot be fetched; its author must send it.'
      : `The pod of ${asked.join(', or else of ')} would be asked.`,
    `If it does not come${maxWaitSeconds === undefined ? '' : ` within ${Math.round(maxWaitSeconds / 60)} minutes`}: ${fault}.`,
  ].join(' ')
}

function openedAs({ arrival }: DryRun): string {
  if (arrival === undefined) throw new Error('What was opened has arrived.')
  const { entity, sender, recipient, signature } = arrival
  const kind = 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
  return [
    recipient === undefined ? 'A public message,' : `A private message for ${recipient.address},`,
    `rightly signed by ${sender}: ${kind} by ${entity.author}.`,
    ...(signature === 'absent' ? [] : [`The signature inside is ${signature}.`]),
  ].join(' ')
}

function referencesOf({ root, target, conversation }: References): string {
  if (root !== undefined) {
    const home = root.local ? 'here' : 'elsewhere'
    return `It refers to a ${root.public ? 'public' : 'private'} post of ${root.author}, who lives ${home}.`
  }
  if (target !== undefined) {
    const under = target.root === undefined ? '' : `, under a post of ${target.root.author}`
    return `What it takes back is here, by ${target.author}${under}.`
  }
  if (conversation !== undefined) return `It is part of a conversation of ${conversation.participants.join(', ')}.`
  return 'It needs nothing that is not in it.'
}

function mayBeSaid({ arrival }: DryRun): string {
  return `${arrival?.sender} may say this.`
}

function storedAs({ tables }: Effects): string {
  if (tables.length === 0) return 'It is here already.'
  const changes = tables.map(({ table, inserted, updated, deleted }) => {
    const counts = Object.entries({ new: inserted, changed: updated, gone: deleted }).filter(([, count]) => count > 0)
    return `${table} (${counts.map(([word, count]) => `${count} ${word}`).join(', ')})`
  })
  return `Rows: ${changes.join(', ')}.`
}

function followsOf({ notifications, outgoing, jobs }: Effects): readonly string[] {
  return [
    ...notifications.map(({ user, type }) => `${user} is notified: ${type}.`),
    ...outgoing.map(
      ({ record, guid, verb, deliveries }) => `${verb} of ${record} ${guid} leaves: ${deliveries} deliveries.`,
    ),
    ...jobs.map(({ name, data }) => `A job of its own: ${name} ${JSON.stringify(data)}.`),
  ]
}

function nameOf(thing: EntityKey): string {
  const [kind, ...rest] = thing.split(':')
  return `the ${kind} ${rest.join(':')}`
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
