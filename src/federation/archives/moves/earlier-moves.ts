import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { closeMovedPerson } from '../../../domain/accounts/closing/close-moved.js'
import { movePerson } from '../../../domain/people/move-person.js'
import { findMoveOfPerson, insertMove, saveAnnouncedEnvelope } from '../../../persistence/archives/account-moves.js'
import { Person } from '../../../persistence/models/person.js'
import { parseAddress } from '../../../protocol/address.js'
import { readMigration } from '../../../protocol/signatures/migration-signature.js'
import { readPublicKey } from '../../../protocol/signatures/rsa.js'
import type { Services } from '../../../services/services.js'
import type { ImportContext } from '../imports/import-context.js'
import { readMembers } from '../reading/archive-owner.js'
import { spooledBatches } from '../reading/spool-archive.js'

/** The longest chain of moves that other pods follow. */
const MAX_MOVES = 10

/** A move of the owner to the account of the archive, or to one before it, with its signed message. */
export interface EarlierMove {
  readonly oldAddress: string
  readonly envelope: string
  readonly signature: string
  readonly remotePhotoPath: string | null
}

interface ListedMove {
  readonly oldAddress: string
  readonly envelope: string
}

/** The moves that an archive lists, the oldest first. Nothing of them is verified. */
export async function listEarlierMoves(folder: string): Promise<readonly ListedMove[]> {
  for await (const { items } of spooledBatches(folder, 'migrations')) {
    return items.slice(0, MAX_MOVES).flatMap(({ value }) => {
      const { old_address: address, envelope } = readMembers(value) ?? {}
      const oldAddress = typeof address === 'string' ? parseAddress(address) : undefined
      return oldAddress === undefined || typeof envelope !== 'string' ? [] : [{ oldAddress, envelope }]
    })
  }
  return []
}

/**
 * The moves that an archive lists, those whose signatures hold by the keys that this pod knows or discovers. The owner could have
 * written the others. The key of the archive proves nothing: if the pod of its account does not answer, anybody may have made it.
 */
export async function verifyEarlierMoves(
  { services, people, oldAddress, signal }: ImportContext,
  folder: string,
): Promise<readonly EarlierMove[]> {
  const listedMoves = await listEarlierMoves(folder)
  if (listedMoves.length === 0) return []
  const identities = new Set([...listedMoves.map((move) => move.oldAddress), oldAddress])
  const lookups = await people.find([...identities], signal)
  const keys = new Map<string, KeyObject>()
  for (const [address, each] of lookups) {
    const key = each.state === 'found' ? readPublicKey(each.person.publicKey) : undefined
    if (key !== undefined) keys.set(address, key)
  }
  const openedEnvelopes = await services.crypto.verifyEnvelopes(
    listedMoves.map(({ envelope }) => ({ envelope, receivedAt: services.now() })),
    keys,
  )
  const signedMoves = listedMoves.flatMap(({ oldAddress: from, envelope }, index) => {
    const openedEnvelope = openedEnvelopes[index]
    if (openedEnvelope?.state !== 'verified' || openedEnvelope.entity.type !== 'account_migration') return []
    const { entity, sender, signature } = openedEnvelope
    const move = readMigration(entity)
    // In an archive the old identity has signed the envelope, and the new one the entity. The signature of an old identity over the
    // entity proves no envelope: every pod that calls itself Friendica gets one.
    const isSigned = signature === 'valid' && sender === move.from && move.witness === move.to
    if (!isSigned || move.from !== from || move.to === from) return []
    const envelopeParts = { signature: entity.signature ?? '', remotePhotoPath: entity.remote_photo_path ?? null }
    return [{ to: move.to, earlier: { oldAddress: from, envelope, ...envelopeParts } }]
  })
  const chain = addressesLeadingTo(oldAddress, signedMoves)
  const confirmedMoves = signedMoves.filter(({ to }) => chain.has(to)).map(({ earlier }) => earlier)
  const others = listedMoves.filter((move) => !confirmedMoves.some((earlier) => earlier.envelope === move.envelope))
  if (others.length > 0) services.log.info({ moves: others.length }, 'earlier moves of an archive not proven')
  return confirmedMoves
}

/** The account of the archive, and the addresses from which signed moves lead to it. */
function addressesLeadingTo(
  oldAddress: string,
  moves: readonly { readonly to: string; readonly earlier: EarlierMove }[],
): ReadonlySet<string> {
  const addresses = new Set([oldAddress])
  for (let before = 0; before < addresses.size; ) {
    before = addresses.size
    for (const { to, earlier } of moves) if (addresses.has(to)) addresses.add(earlier.oldAddress)
  }
  return addresses
}

/** Applies earlier moves that this pod has not received, before the newest one, and keeps their messages for the announcement. */
export async function applyEarlierMoves(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  moves: readonly EarlierMove[],
  {
    newPersonId,
    announceUntil,
    now,
  }: { readonly newPersonId: number; readonly announceUntil: Date; readonly now: Date },
): Promise<void> {
  for (const move of moves) {
    const old = await Person.query(transaction).findOne({ address: move.oldAddress }).forNoKeyUpdate()
    const before = await findMoveOfPerson(transaction, move.oldAddress)
    if (before !== undefined && (before.isProven || old === undefined)) {
      await saveAnnouncedEnvelope(transaction, before.id, { envelope: move.envelope, announceUntil })
      continue
    }
    if (old?.id === newPersonId) continue
    const row = { ...move, oldPersonId: old?.id ?? null, newPersonId, envelopeFriendica: null, announceUntil }
    await insertMove(transaction, row)
    if (old === undefined) continue
    await movePerson(services, transaction, { from: old.id, to: newPersonId })
    await closeMovedPerson(services, transaction, old, now)
  }
}
