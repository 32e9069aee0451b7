import { createHash } from 'node:crypto'
import { type DeadLetterDetails, showDeadLetter } from '../../jobs/dead-letters/show-dead-letter.js'
import { readMagicEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { OperationsServices, Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { Refusal } from '../refusals.js'
import { recordOperatorChange } from './record-operator-change.js'

const TEXT_CHARACTERS = 4_000

/** A dead letter as an admin may see it: no private text, no ciphertext, no secret. */
export interface DeadLetterView extends Omit<DeadLetterDetails, 'payload' | 'isPublic'> {
  /** The XML of a public entity, with its long texts cut. */
  readonly entityXml: string | null
  readonly bytes: number | null
  /** SHA-256 of the payload, in hexadecimal digits. */
  readonly digest: string | null
}

/** Reads a dead letter with its error and its redacted data, without its payload. */
export async function readDeadLetterDetails(
  services: Pick<Services, 'db' | 'jobs'>,
  actor: Actor,
  id: string,
): Promise<DeadLetterView> {
  return { ...viewOf(await requireDeadLetter(services, actor, id)), entityXml: null }
}

/** Reads a dead letter with its public entity; the audit log records the access. */
export async function readDeadLetterPayload(
  services: OperationsServices,
  actor: Actor,
  id: string,
): Promise<DeadLetterView> {
  const deadLetter = await requireDeadLetter(services, actor, id)
  await recordOperatorChange(services, actor, {
    action: 'dead_letters.payload',
    target: { type: 'dead_letters', label: id },
  })
  return viewOf(deadLetter)
}

async function requireDeadLetter(
  services: Pick<Services, 'db' | 'jobs'>,
  actor: Actor,
  id: string,
): Promise<DeadLetterDetails> {
  requirePower(actor, 'administration')
  const deadLetter = await showDeadLetter(services, id)
  if (deadLetter === undefined) throw new Refusal('dead_letter_not_found', 'There is no such dead letter.')
  return deadLetter
}

function viewOf({ payload, isPublic, data, ...deadLetter }: DeadLetterDetails): DeadLetterView {
  return {
    ...deadLetter,
    data: deadLetter.id.startsWith('delivery-') ? data : redact(data, deadLetter.queue.startsWith('fetch')),
    entityXml: payload !== null && isPublic ? cutTexts(xmlOf(payload)) : null,
    bytes: payload === null ? null : Buffer.byteLength(payload),
    digest: payload === null ? null : createHash('sha256').update(payload).digest('hex'),
  }
}

/** The view as text: a line for each field, and the entity below. */
export function formatDeadLetterView(view: DeadLetterView): string {
  const { id, queue, name, fault, recipientGuid, bytes, digest, data, entityXml } = view
  const details = { id, queue, name, fault, recipient_guid: recipientGuid, bytes, digest, data: JSON.stringify(data) }
  const lines = Object.entries(details).map(([fact, value]) => `${fact}: ${value ?? '-'}`)
  return `${[...lines, ...(entityXml === null ? [] : ['', entityXml])].join('\n')}\n`
}

/** The entity in a public envelope; a delivery has the entity itself. */
function xmlOf(payload: string): string {
  try {
    return readMagicEnvelope(payload).payload.toString()
  } catch {
    return payload
  }
}

function cutTexts(xml: string): string {
  return xml.replaceAll(/[^<>]+/g, (text) =>
    text.length <= TEXT_CHARACTERS ? text : `${text.slice(0, TEXT_CHARACTERS)}… (${text.length} characters)`,
  )
}

/** Fields whose text is not secret. In the data of jobs that fetch, addresses of people on other pods are not secret either. */
const SHOWN = new Set([
  'record',
  'type',
  'guid',
  'verb',
  'recipientGuid',
  'acceptedAt',
  'use',
  'entityKeys',
  'postGuids',
])
const SHOWN_OF_FETCHES = new Set(['address', 'author', 'from', 'orFrom', 'host'])

/** Numbers and known fields are shown; of all other texts only their length, because a job may have a token or an e-mail address. */
function redact(value: unknown, isFetch: boolean, key = ''): unknown {
  if (typeof value === 'string') {
    return SHOWN.has(key) || (isFetch && SHOWN_OF_FETCHES.has(key)) ? value : `(${value.length} characters)`
  }
  if (Array.isArray(value)) return value.map((each) => redact(each, isFetch, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redact(each, isFetch, name)]))
}
