import type { KeyObject } from 'node:crypto'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Actor } from '../../../domain/moderation/actor.js'
import { auditContext } from '../../../domain/moderation/record-action.js'
import { Refusal } from '../../../domain/refusals.js'
import { isKnownToOtherPods } from '../../../persistence/accounts/known-accounts.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { User, UserSecrets } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { isGuid } from '../../../protocol/values.js'
import type { Services } from '../../../services/services.js'
import type { ImportingUser } from '../owner.js'
import { openPlainFile } from '../reading/archive-file.js'
import { readArchiveOwner } from '../reading/archive-owner.js'
import { deleteSpool, spoolArchive } from '../reading/spool-archive.js'

/**
 * Restores the key of an account that was created again after a loss of the database from its archive, and its guid if the archive names
 * it. Other pods know both and accept no others. Refuses an account whose present key other pods may know.
 */
export async function restoreKey(
  services: Services,
  actor: Actor,
  { file, user, signal }: { readonly file: string; readonly user: ImportingUser; readonly signal?: AbortSignal },
): Promise<void> {
  const folder = join(services.config.uploadsDir, 'imports', `check-${randomUUID()}`)
  try {
    const maxBytes = services.config.importBytes
    const { values } = await spoolArchive(await openPlainFile(file), { folder, maxBytes, ...(signal && { signal }) })
    const { address, publicKey, privateKey } = readArchiveOwner(values)
    if (address !== user.address) {
      throw new Refusal('old_address_wrong', `The archive is of ${address}, not of ${user.address}.`)
    }
    const guid = values.get('user.guid')
    await inRequestTransaction(services, async (transaction) => {
      await requireUnknownAccount(transaction, user)
      await storeKeys(services, transaction, user, { publicKey, privateKey })
      if (typeof guid === 'string' && isGuid(guid)) await restoreGuid(transaction, user, guid)
      const target = { type: 'person', guid: null, label: user.address }
      await appendAuditEntry(
        transaction,
        { ...auditContext(actor), action: 'archive.restore_key', target },
        services.now(),
      )
    })
  } finally {
    await deleteSpool(folder)
  }
}

async function requireUnknownAccount(
  transaction: Knex.Transaction,
  { userId, personId }: ImportingUser,
): Promise<void> {
  await User.query(transaction).findById(userId).forUpdate().throwIfNotFound()
  if (await isKnownToOtherPods(transaction, { userId, personId })) {
    throw new ArchiveError(
      'same_account',
      'The account has a post, contact or delivery: other pods may know its key already.',
    )
  }
}

async function storeKeys(
  { secrets }: Pick<Services, 'secrets'>,
  transaction: Knex.Transaction,
  { userId, personId }: ImportingUser,
  { publicKey, privateKey }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
): Promise<void> {
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const sealedPrivateKey = secrets.encrypt(pem, `user ${userId}`)
  await UserSecrets.query(transaction).findById(userId).patch({ sealedPrivateKey, bound: true })
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  await Person.query(transaction).findById(personId).patch({ publicKey: publicPem })
}

/** The account keeps its new guid if another person has the old one: a pod discovered since then may have claimed it. */
async function restoreGuid(transaction: Knex.Transaction, { personId }: ImportingUser, guid: string): Promise<void> {
  const holder = await Person.query(transaction).findOne({ guid }).select('id')
  if (holder === undefined) await Person.query(transaction).findById(personId).patch({ guid })
}
