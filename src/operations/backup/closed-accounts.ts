import type { Knex } from 'knex'
import { closeWithoutSending } from '../../domain/accounts/closing/close-now.js'
import { inChunks } from '../../jobs/chunks.js'
import { User } from '../../persistence/models/user.js'
import { BackupError } from './backup-error.js'
import { findManifest, listBackupIds, type Manifest } from './manifest.js'
import { readPart } from './parts.js'
import type { Repository } from './repositories/repository.js'
import { splitLines } from './rows.js'

interface ReadOptions {
  readonly repository: Repository
  readonly identities: readonly string[] | undefined
  readonly signal: AbortSignal
}

const GUID_BATCH_SIZE = 1_000

/**
 * Closes the accounts of a restored pod that a later backup of the repository lists as closed. Other pods have received that already, so
 * that nothing is sent. Returns how many.
 */
export async function closeLaterClosedAccounts(db: Knex, manifest: Manifest, options: ReadOptions): Promise<number> {
  const guids = await readLaterClosed(manifest, options)
  let closedCount = 0
  for (const batch of inChunks(guids, GUID_BATCH_SIZE)) {
    const users = await User.query(db)
      .whereNull('closedAt')
      .whereIn('personId', db('people').select('id').whereIn('guid', batch))
      .select('username')
    for (const { username } of users) {
      options.signal.throwIfAborted()
      await db.transaction(async (transaction) => {
        const user = await User.byUsername(transaction, username).forUpdate().throwIfNotFound()
        await closeWithoutSending(transaction, user, new Date())
      })
      closedCount += 1
    }
  }
  return closedCount
}

/** The list of the newest later backup that the identities open. Closed accounts never open again, so that it has those of all others. */
async function readLaterClosed(manifest: Manifest, options: ReadOptions): Promise<readonly string[]> {
  const { repository } = options
  const later = (await listBackupIds(repository)).filter((id) => id > manifest.id)
  for (const id of later.reverse()) {
    try {
      const { host, closed_accounts: part } = (await findManifest(repository, id)) ?? {}
      if (part === undefined || host !== manifest.host) continue
      const guids: string[] = []
      await readPart(options, part, async (content) => {
        for await (const guid of splitLines(content)) guids.push(guid)
      })
      return guids
    } catch (error) {
      if (!(error instanceof BackupError)) throw error
    }
  }
  return []
}
