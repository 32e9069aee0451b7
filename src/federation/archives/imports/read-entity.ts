import { entityFromJson } from '../../../protocol/entities/entity-json.js'
import type { Entity } from '../../../protocol/entities/registry.js'
import { maxTextCharacters } from '../../../protocol/entities/value-types.js'
import { ProtocolError } from '../../../protocol/errors.js'
import { isWithinLength } from '../../../protocol/values.js'
import { readMembers } from '../reading/archive-owner.js'
import { type ImportRejectionReason, NO_REF } from './import-context.js'

export type ReadItem =
  | {
      readonly ok: true
      readonly ref: string
      readonly entity: Entity
      readonly members: Readonly<Record<string, unknown>>
    }
  | { readonly ok: false; readonly ref: string; readonly reason: ImportRejectionReason }

/** Reads the entity of an item by the rules for received entities. */
export function readArchivedEntity(value: unknown, now: Date): ReadItem {
  const members = readMembers(value)
  const entityData = readMembers(members?.['entity_data'])
  const guid = entityData?.['guid']
  const ref = typeof guid === 'string' && guid !== '' ? guid : NO_REF
  if (members === undefined || entityData === undefined) return { ok: false, ref, reason: 'schema' }
  const text = entityData['text']
  if (typeof text === 'string' && !isWithinLength(text, maxTextCharacters))
    return { ok: false, ref, reason: 'too_long' }
  const isEmptyComment = members['entity_type'] === 'comment' && typeof text === 'string' && text.trim() === ''
  if (isEmptyComment) return { ok: false, ref, reason: 'empty' }
  try {
    return { ok: true, ref, entity: entityFromJson(members, now), members }
  } catch (error) {
    if (error instanceof ProtocolError) return { ok: false, ref, reason: 'schema' }
    throw error
  }
}
