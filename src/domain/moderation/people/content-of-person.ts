import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { Tombstone } from '../../../persistence/models/tombstone.js'
import { User } from '../../../persistence/models/user.js'
import { type ActionDetails, readActionDetails } from '../../../persistence/moderation/action-details.js'
import {
  type ActionRow,
  addTombstonesToAction,
  changeActionDetails,
  findActionInForce,
  lockAction,
} from '../../../persistence/moderation/actions.js'
import { clearRemovedTargets, recordRemovedTarget, setDeleter } from '../../../persistence/moderation/cases.js'
import { hideContentRows, showContentOfAction } from '../../../persistence/moderation/hidden-content.js'
import { type BoundedCount, boundedCounts } from '../../../persistence/moderation/pod-preview.js'
import {
  countPublicContent,
  FIRST_CONTENT_CURSOR,
  findContentToChange,
} from '../../../persistence/moderation/public-content-of-person.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandlers,
  continueBackgroundTask,
  startBackgroundTask,
} from '../../operations/background-tasks.js'
import { retractEntity } from '../../posts/retract.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requireActionOn, requirePower, SYSTEM_ACTOR } from '../actor.js'
import { contentIdsOf, findContent } from '../find-content.js'
import { personNotFound } from '../find-local-user.js'
import type { ContentActionOptions } from '../hide-content.js'
import { MODERATION_LIMITS } from '../limits.js'
import { sendNotice } from '../notices/send-notice.js'
import { type ActionOutcome, auditAction, insertAction, requireReason } from '../record-action.js'
import { insertPermanentTombstones } from '../remove-content.js'

export interface PersonContentOptions extends Omit<ContentActionOptions, 'until'> {
  /** The user name or the address: required for a removal. */
  readonly confirm?: string | undefined
}

export interface PersonContentOutcome extends ActionOutcome {
  /** The work in the background; undefined if nothing changed. */
  readonly task?: BackgroundTask
}

/** Hides the public posts and comments of a local or remote person, in the background, as one action with one undo. */
export function hideContentOfPerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: PersonContentOptions,
): Promise<PersonContentOutcome> {
  return startChange(services, actor, { guid, kind: 'hide_content' }, options)
}

/**
 * Starts the removal of the public posts and comments of a person. As for a single post, what a local person may retract is retracted,
 * which is final.
 */
export function removeContentOfPerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: PersonContentOptions,
): Promise<PersonContentOutcome> {
  return startChange(services, actor, { guid, kind: 'remove_content' }, options)
}

type ChangeKind = 'hide_content' | 'remove_content'

async function startChange(
  services: ModerationServices,
  actor: Actor,
  { guid, kind }: { readonly guid: string; readonly kind: ChangeKind },
  { confirm, withoutNotice = false, ...options }: PersonContentOptions,
): Promise<PersonContentOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const person = await Person.query(transaction).findOne({ guid }).forNoKeyUpdate()
    if (person === undefined || person.closedAt !== null) throw personNotFound()
    const reason = requireReason(options)
    const user = await User.query(transaction).findOne({ personId: person.id })
    if (user !== undefined) requireActionOn(actor, user)
    const inForce = await findActionInForce(transaction, { kind, targetType: 'person', targetGuid: guid })
    const total = inForce === undefined ? await countPublicContent(transaction, person.id) : 0
    if (total === 0) return { changed: false }
    const power = total > MODERATION_LIMITS.cleanedByModerator ? 'administration' : 'moderation'
    requirePower(actor, power)
    const label = user?.username ?? person.address
    if (kind === 'remove_content' && confirm !== label) {
      throw new Refusal('confirmation_needed', `Set confirm to ${label} to remove all public posts and comments.`, {
        details: { preview: boundedTotal(total) },
      })
    }
    const loses = kind === 'remove_content' ? { loses: 'Retractions by local people.' } : {}
    const newAction = await insertAction(services, transaction, actor, {
      kind,
      target: { type: 'person', guid, label },
      reason,
      caseId: options.caseId,
      undo: { possible: true, ...loses },
      power,
      after: boundedTotal(total),
      details: {
        userId: user?.id ?? null,
        personId: person.id,
        tombstones: [],
      } satisfies ActionDetails['remove_content'],
    })
    if (user !== undefined && !withoutNotice) {
      const notice = kind === 'hide_content' ? 'content_hidden' : 'content_removed'
      await sendNotice(services, transaction, { kind: notice, userId: user.id, actionId: newAction.id })
    }
    const action = await auditAction(services, transaction, newAction)
    const work = { kind: OPERATION_OF[kind], target: String(action.id), total, reason }
    return { changed: true, action, task: await startBackgroundTask(services, transaction, actor, work) }
  })
}

function boundedTotal(total: number): { readonly posts_and_comments: BoundedCount } {
  return boundedCounts({ posts_and_comments: total })
}

/** Shows the content in chunks. Retracted content is not restored. */
export async function undoContentChange(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  action: ActionRow,
): Promise<void> {
  const { id } = action
  const { tombstones } = readActionDetails(action, 'remove_content')
  await Tombstone.takeBackPermanent(transaction, tombstones)
  const guidsOf = (type: string) => tombstones.flatMap((each) => (each.targetType === type ? [each.guid] : []))
  await clearRemovedTargets(transaction, { posts: guidsOf('Post'), comments: guidsOf('Comment') })
  if ((await showContentOfAction(transaction, id, ROW_BATCH_SIZE)) < ROW_BATCH_SIZE) return
  const work = { kind: SHOW, target: String(id), total: 0, reason: 'The action is undone.' }
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, work)
}

const OPERATION_OF = { hide_content: 'person.hide_content', remove_content: 'person.remove_content' } as const
const SHOW = 'person.show_content' as const
const ROW_BATCH_SIZE = 500
/** Each retraction takes some ten statements. */
const REMOVAL_BATCH_SIZE = 50

/** Hides, removes and shows content of a person. The target is the action: once it is undone, the rest stays as it is. */
export const personContentTaskHandlers: Pick<
  BackgroundTaskHandlers,
  (typeof OPERATION_OF)[keyof typeof OPERATION_OF] | typeof SHOW
> = {
  [OPERATION_OF.hide_content]: {
    async runChunk(_services, transaction, { target }) {
      const { actionId, items } = await findNextItems(transaction, target, ROW_BATCH_SIZE)
      const ids = (wanted: string) => items.flatMap(({ type, id }) => (type === wanted ? [id] : []))
      await hideContentRows(transaction, actionId, { postIds: ids('post'), commentIds: ids('comment') })
      return { done: items.length, skipped: 0 }
    },
    complete,
  },
  [OPERATION_OF.remove_content]: {
    async runChunk(services, transaction, { target }) {
      const { actionId, items } = await findNextItems(transaction, target, REMOVAL_BATCH_SIZE)
      for (const { type, guid } of items.toSorted((one, other) => (one.guid < other.guid ? -1 : 1))) {
        await removeItem(services, transaction, actionId, { type, guid })
      }
      return { done: items.length, skipped: 0 }
    },
    complete,
  },
  [SHOW]: {
    async runChunk(_services, transaction, { target }) {
      return { done: await showContentOfAction(transaction, Number(target), ROW_BATCH_SIZE), skipped: 0 }
    },
    complete,
  },
}

/** The action has its entry in the audit log. */
async function complete(): Promise<void> {}

/** Locks an action and finds its next chunk; empty once it is undone. */
async function findNextItems(transaction: Knex.Transaction, id: string, limit: number) {
  const actionId = Number(id)
  const action = await lockAction(transaction, actionId)
  if (action?.undoneById !== null) return { actionId, items: [] }
  const { personId, place: cursor } = readActionDetails(action, 'remove_content')
  const { items, next } = await findContentToChange(transaction, personId, cursor ?? FIRST_CONTENT_CURSOR, limit)
  await changeActionDetails(transaction, actionId, { place: next })
  return { actionId, items }
}

async function removeItem(
  services: Pick<Services, 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  actionId: number,
  target: { readonly type: 'post' | 'comment'; readonly guid: string },
): Promise<void> {
  const content = await findContent(transaction, target)
  if (content === undefined) return
  await recordRemovedTarget(transaction, target, services.now())
  if (content.retraction !== undefined) {
    await setDeleter(transaction, 'moderator') // of what is below it
    await retractEntity(services, transaction, content.retraction)
    return
  }
  const tombstones = await insertPermanentTombstones(transaction, null, target, content)
  await addTombstonesToAction(transaction, actionId, tombstones)
  await hideContentRows(transaction, actionId, contentIdsOf(target, content))
}
