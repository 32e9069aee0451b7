import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Json } from '../../src/protocol/entities/define-entity.js'
import { entityToJson } from '../../src/protocol/entities/entity-json.js'
import type { ReceivedEntity } from '../../src/protocol/entities/registry.js'
import { findSenderFault, type ReferencedEntity, type References } from '../../src/protocol/envelopes/sender-rules.js'
import { HANDLING_OF_FAULT, ProtocolError, type ProtocolFault } from '../../src/protocol/errors.js'
import { type OpenVector, openPrivateVector, openVector } from './open-vector.js'
import type { VectorKeys } from './vector-keys.js'
import type { EntityVector, ReceiveVector, RelatedVector, Vectors } from './vectors.js'

type KnownVectors = Pick<Vectors, 'people' | 'related'>

/** Receives a message the way the pod does, with what the vectors know instead of a database. */
export function checkReceived(vector: ReceiveVector, keys: VectorKeys, known: KnownVectors): void {
  const { expect } = vector
  const received = faultOrOpened(() => receive(vector, keys, known))
  if (!expect.ok) {
    ok(typeof received === 'string', `expected ${String(expect.error)}, but it is accepted`)
    ok([expect.error].flat().includes(received), `expected ${String(expect.error)}, got ${received}`)
    equal(HANDLING_OF_FAULT[received] !== 'drop', expect.retry)
    return
  }
  ok(typeof received !== 'string', `expected to be accepted, got ${String(received)}`)
  equal(received.sender, expect.sender)
  const unspecified = expect.unspecified ?? []
  deepEqual(comparable(entityToJson(received.entity), unspecified), comparable(expect.entity, unspecified))
}

function receive(vector: ReceiveVector, keys: VectorKeys, known: KnownVectors): OpenVector {
  const { kind, input, recipient = '' } = vector
  switch (kind) {
    case 'parse_public': {
      const opened = openVector(input, keys)
      if (opened.signature === 'invalid') throw new ProtocolError('SignatureVerificationFailed', vector.name)
      return opened
    }
    case 'receive_public':
      return permitted(openVector(input, keys), undefined, known)
    case 'receive_private':
      return permitted(openPrivateVector(input, recipient, keys), recipient, known)
    default:
      throw new Error(`there is no kind ${String(kind)}`)
  }
}

function permitted(opened: OpenVector, recipient: string | undefined, known: KnownVectors): OpenVector {
  const fault = findSenderFault({ ...opened, recipient }, references(opened.entity, known))
  if (fault !== undefined) throw new ProtocolError(fault, opened.entity.type)
  return opened
}

function references(entity: ReceivedEntity, { people, related }: KnownVectors): References {
  const find = (type: string, guid: string | undefined) =>
    related.find((thing) => thing.type === type && thing.guid === guid)

  switch (entity.type) {
    case 'comment':
    case 'participation':
      return { threadPost: rootOf(find('Post', entity.parent_guid)) }
    case 'like':
      return { threadPost: rootOf(find(entity.parent_type, entity.parent_guid)) }
    case 'poll_participation':
      return { threadPost: rootOf(find('Poll', entity.parent_guid)) }
    case 'event_participation':
      return { threadPost: rootOf(find('Event', entity.parent_guid)) }
    case 'reshare':
      return { threadPost: rootOf(find('Post', entity.root_guid)) }
    case 'retraction': {
      const target = find(entity.target_type, entity.target_guid)
      return { target: target && { author: target.author, threadPost: target.parent } }
    }
    case 'message': {
      const conversation = find('Conversation', entity.conversation_guid)
      // The file does not list the participants of conversations: assumes the local users and the author.
      const participants = [...people.filter(({ local }) => local).map(({ id }) => id), entity.author]
      return { conversation: conversation && { participants } }
    }
    default:
      return {}
  }
}

function rootOf(thing: RelatedVector | undefined): ReferencedEntity | undefined {
  const root = thing?.parent ?? thing
  return root && { author: root.author, isLocal: root.local, isPublic: root.public }
}

function faultOrOpened(run: () => OpenVector): ProtocolFault | OpenVector {
  try {
    return run()
  } catch (error) {
    if (error instanceof ProtocolError) return error.fault
    throw error
  }
}

/** Null, the empty string and what is absent are equal, at every depth. */
function comparable(entity: EntityVector | ReturnType<typeof entityToJson>, unspecified: readonly string[]): unknown {
  const data = Object.entries(entity.entity_data).filter(([name]) => !unspecified.includes(name))
  return withoutEmpty({ ...entity, entity_data: Object.fromEntries(data) })
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value as Record<string, Json>)
  return Object.fromEntries(
    members
      .filter(([, member]) => member !== null && member !== '')
      .map(([name, member]) => [name, withoutEmpty(member)]),
  )
}
