import type { Knex } from 'knex'
import { importedPhotosUrl } from '../../../domain/photos/imported-photos.js'
import { type LoadPause, openLoadPause } from '../../../jobs/inbound/pause-under-load.js'
import { findMovesTo } from '../../../persistence/archives/account-moves.js'
import { deleteChanges } from '../../../persistence/archives/import-changes.js'
import {
  type ArchiveImport,
  deleteImportKey,
  hasWaitingImport,
  type ImportCounts,
  type ItemOutcome,
  insertItemOutcomes,
  type SectionCounts,
  saveImportProgress,
} from '../../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { refreshStreamsOfPerson } from '../../../persistence/people/move-person.js'
import { readPrivateKey } from '../../../protocol/signatures/rsa.js'
import { type Services, withTransaction } from '../../../services/services.js'
import { announceMove } from '../moves/announce-move.js'
import { applyEarlierMoves, listEarlierMoves, verifyEarlierMoves } from '../moves/earlier-moves.js'
import { applyMove, signMove } from '../moves/move-account.js'
import { readMembers } from '../reading/archive-owner.js'
import { readItems } from '../reading/items-of-version.js'
import { spooledBatches } from '../reading/spool-archive.js'
import { importFolder, openPhotosOf } from './begin-import.js'
import { addOutcomes, separateUnlisted } from './count-outcomes.js'
import { listAspectsOfOthers } from './import-contacts.js'
import type { ImportContext, MakePicture } from './import-context.js'
import { importMarks } from './import-lists.js'
import { attachPhotos, importPhotos, importPhotosWithoutPost, showProfilePicture } from './import-photos.js'
import { shareKnownPosts } from './import-posts.js'
import { importProfile, importSettings } from './import-profile.js'
import { type BatchImporter, CONTENT_IMPORTERS, PRIVATE_IMPORTERS, RELATION_IMPORTERS } from './list-importers.js'

interface ImportProgress {
  readonly section: string
  readonly done: number
  readonly total: number | undefined
}

export interface RunOptions {
  readonly signal: AbortSignal
  /** Creates the sizes of a picture; the library for it belongs to the workers. */
  readonly makePicture: MakePicture
  reportProgress?(progress: ImportProgress): void
  /** The import that had the last turn. */
  readonly afterImportId?: number
  /** Milliseconds until other imports that wait have a turn. Default: until the end. */
  readonly turnMs?: number
}

/** The import was paused or cancelled, or another worker has claimed it; what the transaction has done is undone. */
export class ImportStopped extends Error {
  override name = 'ImportStopped'
}

/** Other imports wait; what the import has done is stored. */
export class TurnOver extends Error {
  override name = 'TurnOver'
}

interface Phase {
  readonly name: string
  run(): Promise<void>
}

/** The phases of an import, each from the cursor on. */
export class ImportRun {
  readonly #services: Services
  readonly #import: ArchiveImport
  readonly #options: RunOptions
  readonly #loadPause: LoadPause
  readonly #endOfTurn: number
  #context: ImportContext
  #counts: ImportCounts
  #fetchedBytes: number

  constructor(context: ImportContext, claimed: ArchiveImport, options: RunOptions) {
    this.#context = context
    this.#services = context.services
    this.#import = claimed
    this.#options = options
    this.#counts = claimed.counts
    this.#fetchedBytes = claimed.fetchedBytes
    this.#loadPause = openLoadPause(context.services.jobs)
    this.#endOfTurn = performance.now() + (options.turnMs ?? Number.POSITIVE_INFINITY)
  }

  async run(): Promise<void> {
    const phases = this.#listPhases()
    const from = Math.max(
      0,
      phases.findIndex(({ name }) => name === this.#import.phase),
    )
    for (const [index, phase] of phases.entries()) {
      if (index < from) continue
      this.#options.signal.throwIfAborted()
      if (index > from) await this.#saveInOwnTransaction(phase.name, 0, [])
      await phase.run()
    }
  }

  finished(): ArchiveImport {
    return { ...this.#import, state: 'done', counts: this.#counts }
  }

  #listPhases(): readonly Phase[] {
    const { options } = this.#import
    return [
      ...(options.contacts === false ? [] : RELATION_IMPORTERS.map((importer) => this.#listPhase(importer))),
      { name: 'photos', run: () => this.#importPhotos() },
      ...(options.move ? [{ name: 'move', run: () => this.#move() }] : []),
      ...(options.content ? CONTENT_IMPORTERS.map((importer) => this.#listPhase(importer)) : []),
      ...(options.content && this.#import.identity !== 'unproven'
        ? PRIVATE_IMPORTERS.map((importer) => this.#listPhase(importer))
        : []),
      ...(options.content ? [{ name: 'marks', run: () => this.#importMarks() }] : []),
      { name: 'settings', run: () => this.#importSettings() },
      { name: 'place_photos', run: () => this.#attachPhotos() },
      ...(options.move ? [{ name: 'announce', run: () => this.#announce() }] : []),
    ]
  }

  #listPhase(importer: BatchImporter): Phase {
    const { list, section } = importer
    return {
      name: PHASE_OF_LIST[list] ?? list,
      run: () => this.#importList(importer, PHASE_OF_LIST[list] ?? list, section),
    }
  }

  async #importList(importer: BatchImporter, phase: string, section: string): Promise<void> {
    const { list } = importer
    const from = this.#import.phase === phase ? this.#import.lines : 0
    const total = Number(Object(this.#import.header['lists'])[list] ?? 0)
    for await (const { items, lines } of spooledBatches(importFolder(this.#services, this.#import), list, from)) {
      this.#options.signal.throwIfAborted()
      await this.#loadPause.wait(this.#options.signal)
      const batch = await importer.prepare(this.#context, readItems(this.#context, list, items))
      this.#counts = await inRequestTransaction(this.#services, async (transaction) => {
        const storedOutcomes = await batch.store(transaction)
        return this.#save(transaction, phase, lines, [...batch.outcomes, ...storedOutcomes])
      })
      this.#options.reportProgress?.({ section, done: lines, total })
      await this.#passTurn()
    }
  }

  async #passTurn(): Promise<void> {
    if (performance.now() >= this.#endOfTurn && (await hasWaitingImport(this.#services.db, this.#import.id)))
      throw new TurnOver()
  }

  /** The cursor, the outcomes and the items change together. Returns the counts that hold after the commit. */
  async #save(
    transaction: Knex.Transaction,
    phase: string,
    lines: number,
    outcomes: readonly ItemOutcome[],
  ): Promise<ImportCounts> {
    const { listed, unlisted } = separateUnlisted(this.#counts, outcomes)
    const storedOutcomes = await insertItemOutcomes(transaction, this.#import.id, listed)
    const counts = addOutcomes(this.#counts, [...storedOutcomes, ...unlisted])
    const progress = { phase, lines, counts, fetchedBytes: this.#fetchedBytes }
    if (!(await saveImportProgress(transaction, this.#import, progress))) throw new ImportStopped()
    return counts
  }

  async #saveInOwnTransaction(phase: string, lines: number, outcomes: readonly ItemOutcome[]): Promise<void> {
    this.#counts = await this.#services.db.transaction((transaction) => this.#save(transaction, phase, lines, outcomes))
  }

  /** The old account moves on this pod, and the profile that other pods get with the move changes. Afterwards the move cannot be undone, because the key of the archive is deleted. */
  async #move(): Promise<void> {
    const { sealedKey, userId, oldAddress } = this.#import
    if (sealedKey === null) return // an earlier attempt has signed it
    const oldKey = readPrivateKey(this.#services.secrets.decrypt(sealedKey, `user ${userId}`))
    if (oldKey === undefined) throw new Error('The key of the archive cannot be parsed.')
    // This may discover the old account, whose key is compared in the transaction.
    const earlier = await verifyEarlierMoves(this.#context, importFolder(this.#services, this.#import))
    const remotePhotoPath = await this.#photoPath()
    this.#counts = await inRequestTransaction(this.#services, async (transaction) => {
      const counts = await this.#importProfile(transaction, 'move')
      const services = withTransaction(this.#services, transaction)
      const move = await signMove(services, { user: this.#context.user, oldAddress, oldKey, remotePhotoPath })
      const { newPersonId, announceUntil } = move
      const now = this.#services.now()
      await applyEarlierMoves(services, transaction, earlier, { newPersonId, announceUntil, now })
      await applyMove(services, transaction, { ...move, oldKey }, now)
      if (!(await deleteImportKey(transaction, this.#import))) throw new ImportStopped()
      await deleteChanges(transaction, this.#import.id)
      return counts
    })
    this.#context = await withEarlierAddresses(this.#context, this.#import)
  }

  async #importPhotos(): Promise<void> {
    const { header, phase, lines } = this.#import
    const file = await openPhotosOf(this.#services, this.#import)
    await importPhotos(this.#context, {
      file,
      folder: importFolder(this.#services, this.#import),
      profile: Object(header['profile']),
      fromEntry: phase === 'photos' ? lines : 0,
      makePicture: this.#options.makePicture,
      fetchedBytes: this.#fetchedBytes,
      save: (entries, outcomes, fetchedBytes) => {
        this.#fetchedBytes = fetchedBytes
        return this.#saveInOwnTransaction('photos', entries, outcomes)
      },
      passTurn: () => this.#passTurn(),
      reportProgress: (done) => this.#options.reportProgress?.({ section: 'photos', done, total: undefined }),
    })
  }

  /** Other pods build the URLs of photos from this path and the old names. */
  async #photoPath(): Promise<string | undefined> {
    const { imported = 0, skipped = 0 } = this.#counts.photos ?? {}
    return imported + skipped === 0 ? undefined : importedPhotosUrl(this.#services.config.url, await this.#personGuid())
  }

  async #attachPhotos(): Promise<void> {
    const { id, identity } = this.#import
    await attachPhotos(this.#context, id, { shouldAnnounce: identity === 'moved_here' })
    await importPhotosWithoutPost(this.#context, importFolder(this.#services, this.#import))
  }

  async #personGuid(): Promise<string> {
    const { guid } = await Person.query(this.#services.db).findById(this.#context.user.personId).throwIfNotFound()
    return guid
  }

  /** Returns the counts that hold after the commit. */
  async #importProfile(transaction: Knex.Transaction, phase: 'move' | 'settings'): Promise<ImportCounts> {
    const { options, header } = this.#import
    if (!options.profile) return this.#counts
    const profile = readMembers(header['profile'])
    const reason = await importProfile(this.#context, transaction, profile)
    if (reason === undefined) await showProfilePicture(this.#context, transaction, profile ?? {})
    const profileItem = { section: 'profile', position: 0, ref: 'profile', reason: reason ?? null } as const
    if (!isUncounted(this.#counts.profile)) return this.#counts // a repetition
    const itemOutcome = { ...profileItem, outcome: reason === undefined ? 'imported' : 'refused' } as const
    return this.#save(transaction, phase, 0, [itemOutcome])
  }

  async #importMarks(): Promise<void> {
    const folder = importFolder(this.#services, this.#import)
    // Only with the move: in a repetition, a post whose aspect the person has deleted since would get a new one of that name.
    if (this.#import.options.move && (this.#counts.posts?.skipped ?? 0) > 0) {
      const aspectsOfOthers = await listAspectsOfOthers(this.#context, folder)
      for await (const { items } of spooledBatches(folder, 'posts')) {
        await shareKnownPosts(this.#context, readItems(this.#context, 'posts', items), aspectsOfOthers)
      }
    }
    for (const list of ['hidden_posts', 'muted_posts'] as const) {
      for await (const { items } of spooledBatches(folder, list)) {
        await importMarks(this.#context, list, items)
      }
    }
    await inRequestTransaction(this.#services, (transaction) =>
      refreshStreamsOfPerson(transaction, this.#context.user.personId),
    )
  }

  async #importSettings(): Promise<void> {
    const { options, header } = this.#import
    if (!options.move) {
      this.#counts = await inRequestTransaction(this.#services, (transaction) =>
        this.#importProfile(transaction, 'settings'),
      )
    }
    if (!options.settings || !isUncounted(this.#counts.settings)) return
    this.#counts = await inRequestTransaction(this.#services, async (transaction) => {
      await importSettings(this.#context, transaction, header)
      const outcome = { section: 'settings', position: 0, ref: 'settings', outcome: 'imported', reason: null } as const
      return this.#save(transaction, 'settings', 0, [outcome])
    })
  }

  async #announce(): Promise<void> {
    await announceMove(this.#context, importFolder(this.#services, this.#import))
  }
}

/** Whether a section is part of the import, and nothing of it is counted yet. */
function isUncounted(counts: SectionCounts | undefined): boolean {
  return counts !== undefined && counts.imported + counts.refused === 0
}

/** Adds the earlier addresses of the archive that have moved to the importing account. */
export async function withEarlierAddresses(context: ImportContext, claimed: ArchiveImport): Promise<ImportContext> {
  const listedMoves = await listEarlierMoves(importFolder(context.services, claimed))
  const moves = await findMovesTo(
    context.services.db,
    context.user.personId,
    listedMoves.map((move) => move.oldAddress),
  )
  return { ...context, earlierAddresses: new Set(moves.map((move) => move.oldAddress)) }
}

/** The names of phases in the API, where they differ from the list. */
const PHASE_OF_LIST: Readonly<Record<string, string>> = {
  contact_groups: 'aspects',
  followed_tags: 'tags',
  post_subscriptions: 'subscriptions',
}
