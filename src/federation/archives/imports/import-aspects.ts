import type { Knex } from 'knex'
import { type ImportChange, recordChanges } from '../../../persistence/archives/import-changes.js'
import { Aspect } from '../../../persistence/models/aspect.js'
import { User } from '../../../persistence/models/user.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readMembers } from '../reading/archive-owner.js'
import { readAspectName } from './aspect-names.js'
import { BatchResults, type ImportContext, type ListImporter, NO_REF, type ReadyItem } from './import-context.js'

/** The aspects of the owner, in their order. */
export const aspectImporter: ListImporter<ReadyItem> = {
  section: 'aspects',
  list: 'contact_groups',

  async prepare(context, items) {
    const { services, user } = context
    const results = new BatchResults<ReadyItem>('aspects')
    const existingNames = new Set(
      (await Aspect.query(services.db).where({ userId: user.userId })).map(({ name }) => name.toLowerCase()),
    )
    for (const { position, value } of items) {
      const name = readAspectName(context, readMembers(value)?.['name'])
      if (name === undefined) {
        results.refuse({ position, ref: NO_REF }, 'schema')
        continue
      }
      const item = { position, ref: name }
      if (existingNames.has(name.toLowerCase())) results.recordPresent(item)
      else results.accept(item)
      existingNames.add(name.toLowerCase())
    }
    return results
  },

  async store(context, transaction, ready) {
    const results = new BatchResults<ReadyItem>('aspects')
    const names = ready.map(({ ref }) => ref)
    const ids = await ensureAspects(context, transaction, names)
    for (const item of ready) {
      if (ids.has(item.ref.toLowerCase())) results.recordImported(item)
      else results.refuse(item, 'over_limit')
    }
    return results.outcomes
  },
}

/** Creates the missing aspects, up to the limit; returns the ids of all by name in lower case. */
export async function ensureAspects(
  { user, importId }: Pick<ImportContext, 'user' | 'importId'>,
  transaction: Knex.Transaction,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { userId } = user
  await User.lock(transaction, userId)
  const aspects = await Aspect.query(transaction).where({ userId })
  const ids = new Map(aspects.map(({ name, id }) => [name.toLowerCase(), id]))
  const changes: ImportChange[] = []
  for (const name of names) {
    if (ids.has(name.toLowerCase()) || ids.size >= IMPORT_LIMITS.aspects) continue
    const { id } = await Aspect.insertLast(transaction, userId, name)
    ids.set(name.toLowerCase(), id)
    changes.push({ kind: 'aspect', id })
  }
  await recordChanges(transaction, importId, changes)
  return ids
}
