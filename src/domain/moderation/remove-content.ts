import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { Tombstone } from '../../persistence/models/tombstone.js'
import type { ActionDetails } from '../../persistence/moderation/action-details.js'
import { findActionInForce } from '../../persistence/moderation/actions.js'
import { setDeleter } from '../../persistence/moderation/cases.js'
import { hideContentRows } from '../../persistence/moderation/hidden-content.js'
import type { ModerationServices } from '../../services/services.js'
import { destroyWithCreations, retractEntity } from '../posts/retract.js'
import { Refusal } from '../refusals.js'
import { type Actor, requirePower } from './actor.js'
import {
  type ContentTarget,
  contentIdsOf,
  contentNotFound,
  type FoundContent,
  findContent,
  requireActionOnContent,
} from './find-content.js'
import type { ContentActionOptions } from './hide-content.js'
import { sendNotice } from './notices/send-notice.js'
import {
  type ActionOptions,
  type ActionOutcome,
  auditAction,
  insertAction,
  recordAction,
  requireReason,
} from './record-action.js'

export interface RemovalOutcome extends ActionOutcome {
  /** A retraction was sent. False: the content was removed from this pod only. */
  readonly retracted: boolean
}

/**
 * Removes a post or a comment. Where a local person may retract it, that is done: such a removal is final. Other content is hidden, and
 * tombstones keep away what other pods send about it until the undo.
 */
export async function removeContent(
  services: ModerationServices,
  actor: Actor,
  target: ContentTarget,
  { withoutNotice = false, ...options }: ContentActionOptions,
): Promise<RemovalOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const { type, guid } = target
    const content = await findContent(transaction, target)
    if (content === undefined) {
      if (await isRemoved(transaction, target)) return { changed: false, retracted: false }
      throw contentNotFound(type)
    }
    const reason = requireReason(options)
    requireActionOnContent(actor, content)
    const inForce = await findActionInForce(transaction, { kind: 'remove', targetType: type, targetGuid: guid })
    if (inForce !== undefined) return { changed: false, retracted: false }
    if (content.caseId !== undefined) {
      await transaction('moderation_cases').where({ id: content.caseId }).update({ targetDeleted: 'moderator' })
    }
    const { retraction } = content
    if (retraction !== undefined) {
      await setDeleter(transaction, 'moderator')
      await retractEntity(services, transaction, retraction)
    }
    const tombstones =
      retraction === undefined ? await insertPermanentTombstones(transaction, actor.personId, target, content) : []

    const newAction = await insertAction(services, transaction, actor, {
      kind: 'remove',
      target: { type, guid, label: content.author.address },
      reason,
      caseId: options.caseId ?? content.caseId,
      undo: { possible: retraction === undefined },
      after: { retracted: retraction !== undefined },
      details: { tombstones, caseId: content.caseId ?? null } satisfies ActionDetails['remove'],
    })
    if (retraction === undefined) await hideContentRows(transaction, newAction.id, contentIdsOf(target, content))
    if (content.user !== undefined && !withoutNotice) {
      const notice = { kind: 'content_removed', userId: content.user.id, actionId: newAction.id, target } as const
      await sendNotice(services, transaction, notice)
    }
    const action = await auditAction(services, transaction, newAction)
    return { changed: true, retracted: retraction !== undefined, action }
  })
}

export interface PurgeOptions extends ActionOptions {
  /** The guid. */
  readonly confirm?: string | undefined
}

/** Deletes remote content with everything below it. Tombstones keep it away. Local content is removed instead, which retracts it. */
export async function purgeContent(
  services: ModerationServices,
  actor: Actor,
  target: ContentTarget,
  { confirm, ...options }: PurgeOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'administration')
  return inRequestTransaction(services, async (transaction) => {
    const { type, guid } = target
    const content = await findContent(transaction, target)
    if (content === undefined) {
      if (await isRemoved(transaction, target)) return { changed: false }
      throw contentNotFound(type)
    }
    const reason = requireReason(options)
    if (content.author.podId === null) {
      throw new Refusal('not_remote', 'The author has an account on this pod. Remove the content instead.')
    }
    if (confirm !== guid) {
      const preview = { type, author: content.author.address, created_at: content.createdAt.toISOString() }
      throw new Refusal('confirmation_needed', `Set confirm to ${guid} to delete this permanently.`, {
        details: { preview },
      })
    }
    if (content.caseId !== undefined) {
      await transaction('moderation_cases').where({ id: content.caseId }).update({ targetDeleted: 'purge' })
    }
    await insertPermanentTombstones(transaction, actor.personId, target, content)
    await setDeleter(transaction, 'purge')
    await destroyWithCreations(transaction, type, [content.id])
    const action = await recordAction(services, transaction, actor, {
      kind: 'purge',
      target: { type, guid, label: content.author.address },
      reason,
      caseId: options.caseId ?? content.caseId,
      undo: { possible: false },
    })
    return { changed: true, action }
  })
}

/**
 * Leaves tombstones for remote content. That of its author keeps the content away, that of a local person also what other people send
 * about it: comments, likes and reshares, for which the pod would fetch it again.
 */
export async function insertPermanentTombstones(
  transaction: Knex.Transaction,
  actorPersonId: number | null,
  { type, guid }: ContentTarget,
  { id, author }: FoundContent,
) {
  const photos = type === 'post' ? await Photo.query(transaction).where({ postId: id }).select('guid') : []
  const local = await Person.query(transaction)
    .whereNull('podId')
    .orderByRaw('id = ? desc, id', [actorPersonId ?? 0])
    .first()
    .throwIfNotFound()
  const targetType = type === 'post' ? 'Post' : 'Comment'
  return Tombstone.insertPermanent(transaction, [
    { type: targetType, guid, by: author.address },
    { type: targetType, guid, by: local.address },
    ...photos.map((photo) => ({ type: 'Photo', guid: photo.guid, by: author.address })),
  ])
}

async function isRemoved(transaction: Knex.Transaction, { type, guid }: ContentTarget): Promise<boolean> {
  const action = await transaction('moderation_actions')
    .whereIn('kind', ['remove', 'purge'])
    .where({ targetType: type, targetGuid: guid })
    .first('id')
  return action !== undefined
}
