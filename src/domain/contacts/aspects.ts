import type { Knex } from 'knex'
import { findAspectOfUser, type ListedAspect, listAspectsOfUser } from '../../persistence/contacts/list-aspects.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Aspect } from '../../persistence/models/aspect.js'
import { User } from '../../persistence/models/user.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { LIST_LIMITS, TEXT_LIMITS } from '../limits.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'

/** Undefined fields stay unchanged. */
export interface AspectChange {
  readonly name?: string | undefined
  /** Position among the viewer's aspects. The others move so that positions stay consecutive. */
  readonly position?: number | undefined
}

export async function listAspects(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  page: OffsetPage,
): Promise<Page<ListedAspect>> {
  return listAspectsOfUser(services.db, viewer.userId, page)
}

/** Returns an aspect of the viewer. */
export async function getAspect(services: Pick<Services, 'db'>, viewer: Viewer, id: number): Promise<ListedAspect> {
  const aspect = await findAspectOfUser(services.db, viewer.userId, id)
  if (aspect === undefined) throw new Refusal('aspect_not_found', 'You have no aspect with this id.')
  return aspect
}

/** Throws unless all these aspects belong to the viewer. */
export async function requireAspects(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  ids: readonly number[],
): Promise<void> {
  const different = [...new Set(ids)]
  if (different.length === 0) return
  const ownCount = await Aspect.query(services.db).where({ userId: viewer.userId }).findByIds(different).resultSize()
  if (ownCount < different.length) throw new Refusal('aspect_not_found', 'You have no aspect with this id.')
}

/** Returns the ids that belong to the viewer. The list is one array value, because it can exceed the limit of 65 535 parameters. */
export async function ownAspectIds(
  transaction: Knex.Transaction,
  { userId }: Viewer,
  chosen: 'all' | readonly number[],
): Promise<readonly number[]> {
  const ownAspects = Aspect.query(transaction).select('id').where({ userId })
  const aspects = await (chosen === 'all' ? ownAspects : ownAspects.whereRaw('id = any(?)', [[...chosen]]))
  return aspects.map(({ id }) => id)
}

/** Creates an aspect in the last position. */
export async function createAspect(
  services: Pick<Services, 'db' | 'requestContext'>,
  viewer: Viewer,
  name: string,
): Promise<ListedAspect> {
  const { userId } = viewer
  return changeLocked(services, viewer, async (transaction) => {
    if ((await Aspect.query(transaction).where({ userId }).resultSize()) >= LIST_LIMITS.aspects) {
      throw new Refusal('too_many_aspects', `You have ${LIST_LIMITS.aspects} aspects, the maximum: delete some first.`)
    }
    return Aspect.insertLast(transaction, userId, requireAspectName(name))
  })
}

/** Changes name and position in one transaction. */
export async function changeAspect(
  services: Pick<Services, 'db' | 'requestContext'>,
  viewer: Viewer,
  id: number,
  { name, position }: AspectChange,
): Promise<ListedAspect> {
  const { userId } = viewer
  return changeLocked(services, viewer, async (transaction) => {
    const aspect = await getAspect({ db: transaction }, viewer, id)
    if (name !== undefined)
      await Aspect.query(transaction)
        .findById(aspect.id)
        .patch({ name: requireAspectName(name) })
    if (position !== undefined) await Aspect.moveTo(transaction, { userId, id: aspect.id, position })
    return getAspect({ db: transaction }, viewer, id)
  })
}

/** Runs a change with the user locked, so that simultaneous changes of positions run one after the other. */
async function changeLocked<Result>(
  services: Pick<Services, 'db' | 'requestContext'>,
  { userId }: Viewer,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  try {
    return await inRequestTransaction(services, async (transaction) => {
      await User.lock(transaction, userId)
      return work(transaction)
    })
  } catch (error) {
    if (isUniqueViolation(error, 'aspects_name')) {
      throw new Refusal('name_taken', 'You already have an aspect with this name.')
    }
    throw error
  }
}

function requireAspectName(text: string): string {
  const name = text.trim()
  const fault = name === '' ? 'is blank' : findTextFault(name, TEXT_LIMITS.aspectNameCharacters)
  if (fault === undefined) return name
  throw new Refusal('name_invalid', `The name ${fault}.`)
}
