import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasSpaceFor, readFolderSpace } from '../../../domain/operations/storage.js'
import { hasCode } from '../../../errors/thrown.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { parsePart, type SplitPlan, splitJson } from '../../../protocol/archives/json-splitter.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ArchiveFile } from './archive-file.js'
import { readMembers } from './archive-owner.js'
import { openArchiveFile } from './open-archive-file.js'

/** The lists of an archive. Comments are apart from likes and votes, because these may belong to them. */
const SPOOLED_LISTS = [
  'contact_groups',
  'contacts',
  'posts',
  'followed_tags',
  'post_subscriptions',
  'own_comments',
  'own_reactions',
  'blocks',
  'photos',
  'hidden_posts',
  'muted_posts',
  'migrations',
  'conversations',
  'others_comments',
  'others_reactions',
  'others_posts',
] as const

export type SpooledList = (typeof SPOOLED_LISTS)[number]

/** An archive that is split into one file per list, so that each can be read item by item. */
export interface SpooledArchive {
  readonly folder: string
  /** The members that are not lists, by their paths. */
  readonly values: ReadonlyMap<string, unknown>
  readonly counts: Readonly<Record<SpooledList, number>>
  readonly bytes: number
  readonly sha256: string
}

/** An item with its place in the list of the archive. */
export interface SpooledItem {
  readonly position: number
  readonly value: unknown
}

const LISTS: Readonly<Record<string, readonly [SpooledList, SpooledList?]>> = {
  'user.contact_groups': ['contact_groups'],
  'user.aspects': ['contact_groups'], // version 1.0
  'user.contacts': ['contacts'],
  'user.posts': ['posts'],
  'user.followed_tags': ['followed_tags'],
  'user.post_subscriptions': ['post_subscriptions'],
  'user.relayables': ['own_comments', 'own_reactions'],
  'user.comments': ['own_comments'], // version 1.0
  'user.blocks': ['blocks'],
  'user.photos': ['photos'],
  'user.hidden_posts': ['hidden_posts'],
  'user.muted_posts': ['muted_posts'],
  'user.migrations': ['migrations'],
  'user.conversations': ['conversations'],
  'others_data.relayables': ['others_comments', 'others_reactions'],
  'others_data.posts': ['others_posts'],
}

const PLAN: SplitPlan = {
  objects: new Set(['user', 'others_data']),
  arrays: new Set(Object.keys(LISTS)),
  values: new Set(
    [
      'username',
      'guid',
      'name',
      'private_key',
      'serialized_private_key',
      'profile',
      'language',
      'disable_mail',
      'auto_follow_back',
      'auto_follow_back_aspect',
      'settings',
    ]
      .map((name) => `user.${name}`)
      .concat('version'),
  ),
}

interface SpoolOptions {
  readonly folder: string
  readonly maxBytes: number
  readonly signal?: AbortSignal
  /** Called with the bytes that the lists may take, before they are longer. Throws if there is no space for them. */
  readonly reserve?: (bytes: number) => Promise<void>
}

/** Reads an archive once and splits it. The memory for this stays small with any file. */
export async function spoolArchive(
  file: ArchiveFile,
  { folder, maxBytes, signal, reserve = async () => undefined }: SpoolOptions,
): Promise<SpooledArchive> {
  const { text, fileInfo } = await openArchiveFile(file, maxBytes)
  await deleteSpool(folder)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const spool = new Spool(folder)
  const requireSpace = openSpaceCheck(folder)
  let reservedBytes = 0
  try {
    for await (const part of splitJson(text, PLAN)) {
      signal?.throwIfAborted()
      if (part.kind === 'begin') await spool.begin(part.path)
      else if (part.kind === 'value') spool.keep(part.path, parsePart(part.text))
      else {
        await requireSpace(part.text.length)
        await spool.add(part.path, parsePart(part.text))
      }
      if (spool.bytes() > reservedBytes) {
        reservedBytes = spool.bytes() + IMPORT_LIMITS.partBytes
        await reserve(reservedBytes)
      }
    }
    await reserve(spool.bytes())
    await spool.flush()
  } finally {
    await spool.close()
  }
  return { folder, values: spool.values, counts: spool.counts(), ...fileInfo() }
}

const SPACE_CHECK_CHARACTERS = 64 * 1024 ** 2

/** Other data of the pod may be on the same disk. */
function openSpaceCheck(folder: string): (characters: number) => Promise<void> {
  let uncheckedCharacters = SPACE_CHECK_CHARACTERS
  return async (characters) => {
    uncheckedCharacters += characters
    if (uncheckedCharacters < SPACE_CHECK_CHARACTERS) return
    uncheckedCharacters = 0
    if (hasSpaceFor(await readFolderSpace(folder), SPACE_CHECK_CHARACTERS, IMPORT_LIMITS.keptFreeBytes)) return
    throw new ArchiveError('no_space', 'The disk has no space for the lists of the archive.')
  }
}

export async function deleteSpool(folder: string): Promise<void> {
  for (const each of [folder, keptFolderOf(folder), replacedFolderOf(folder)]) await deleteFolder(each)
}

async function deleteFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
}

/**
 * Keeps the items of a split archive that are chosen, under their positions, and deletes the others. Returns the bytes of the kept ones.
 * The folder is missing only while the kept items are complete, so that a process that dies loses nothing.
 */
export async function keepChosenItems(
  folder: string,
  isKept: (list: SpooledList, position: number) => boolean,
): Promise<number> {
  let bytes = 0
  const keptFolder = keptFolderOf(folder)
  await deleteFolder(keptFolder)
  await mkdir(keptFolder, { recursive: true, mode: 0o700 })
  for (const list of SPOOLED_LISTS) {
    const handle = await open(join(keptFolder, list), 'a', 0o600)
    try {
      for await (const line of linesOf(join(folder, list))) {
        if (!isKept(list, Number(line.slice(0, line.indexOf('\t'))))) continue
        await handle.appendFile(`${line}\n`)
        bytes += Buffer.byteLength(line) + 1
      }
    } finally {
      await handle.close()
    }
  }
  await rename(folder, replacedFolderOf(folder))
  await finishKeeping(folder)
  return bytes
}

/** Finishes what a process has begun that died in `keepChosenItems`. */
export async function finishKeeping(folder: string): Promise<void> {
  if (!(await isFolder(folder)) && (await isFolder(keptFolderOf(folder)))) await rename(keptFolderOf(folder), folder)
  await deleteFolder(replacedFolderOf(folder))
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/** The folder of the import to which a folder belongs that `keepChosenItems` has created. */
export function folderOfImport(name: string): string {
  return name.replace(/-(kept|replaced)$/, '')
}

function keptFolderOf(folder: string): string {
  return `${folder}-kept`
}

function replacedFolderOf(folder: string): string {
  return `${folder}-replaced`
}

/** A batch of items after a position of the list, with the next position. */
export interface SpooledBatch {
  readonly items: readonly SpooledItem[]
  /** The number of lines that are read, this batch included. */
  readonly lines: number
}

/** Reads a list from a line on, in batches that one transaction can store. */
export async function* spooledBatches(folder: string, list: SpooledList, fromLine = 0): AsyncGenerator<SpooledBatch> {
  let items: SpooledItem[] = []
  let characters = 0
  let lines = 0
  for await (const line of linesOf(join(folder, list))) {
    lines += 1
    if (lines <= fromLine) continue
    const separator = line.indexOf('\t')
    items.push({ position: Number(line.slice(0, separator)), value: JSON.parse(line.slice(separator + 1)) })
    characters += line.length
    if (items.length < IMPORT_LIMITS.batchItems && characters < IMPORT_LIMITS.batchCharacters) continue
    yield { items, lines }
    items = []
    characters = 0
  }
  if (items.length > 0) yield { items, lines }
}

/** A list that the archive does not have is empty. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let parts: string[] = [] // of a line that is longer than a chunk; joined once
  for await (const chunk of createReadStream(file, { encoding: 'utf8' }) as AsyncIterable<string>) {
    const [first = '', ...lines] = chunk.split('\n')
    parts.push(first)
    for (const line of lines) {
      yield parts.join('')
      parts = [line]
    }
  }
}

interface SpoolFile {
  readonly handle: FileHandle
  pending: string
  count: number
  /** Photos of the items. */
  photos: number
  /** What is written, and what is pending. */
  bytes: number
}

const PENDING_CHARACTERS = 262_144

/** Each occurrence deletes what the list had before, so that the limits would count anew. */
const MAX_OCCURRENCES = 2

/** Lists of which each account has its own, with a row for each item. */
const LISTS_OF_MARKS = [
  'followed_tags',
  'blocks',
  'hidden_posts',
  'muted_posts',
] as const satisfies readonly SpooledList[]

class Spool {
  readonly values = new Map<string, unknown>()
  readonly #folder: string
  readonly #files = new Map<SpooledList, SpoolFile>()
  readonly #positions = new Map<string, number>()
  readonly #occurrences = new Map<string, number>()
  /** Items of the whole file, also those that a repeated member has replaced. */
  #readItems = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  /** A member that occurs again replaces all that is kept of the first one. */
  async begin(path: string): Promise<void> {
    const occurrences = (this.#occurrences.get(path) ?? 0) + 1
    this.#occurrences.set(path, occurrences)
    if (occurrences > MAX_OCCURRENCES) throw new ArchiveError('schema', `The member ${path} occurs too often.`)
    const below = path === '' ? '' : `${path}.`
    for (const name of [...this.values.keys()]) if (name.startsWith(below)) this.values.delete(name)
    for (const [list, files] of Object.entries(LISTS)) {
      if (list !== path && !list.startsWith(below)) continue
      this.#positions.set(list, 0)
      for (const name of files) {
        if (name === undefined) continue
        const file = await this.#file(name)
        file.pending = ''
        file.count = 0
        file.photos = 0
        file.bytes = 0
        await file.handle.truncate()
      }
    }
  }

  /** A list of another type, such as null, is as good as an empty one. */
  keep(path: string, value: unknown): void {
    if (!Object.hasOwn(LISTS, path)) this.values.set(path, value)
  }

  async add(path: string, value: unknown): Promise<void> {
    const [comments, reactions] = LISTS[path] ?? []
    if (comments === undefined) return
    const list = reactions !== undefined && !isComment(value) ? reactions : comments
    const position = this.#positions.get(path) ?? 0
    this.#positions.set(path, position + 1)
    this.#readItems += 1
    const file = await this.#file(list)
    const line = `${position}\t${JSON.stringify(value)}\n`
    file.pending += line
    file.bytes += Buffer.byteLength(line)
    file.count += 1
    file.photos += countPhotos(list, value)
    this.#checkCounts()
    if (file.pending.length > PENDING_CHARACTERS) await flushFile(file)
  }

  counts(): SpooledArchive['counts'] {
    const counts = SPOOLED_LISTS.map((list) => [list, this.#files.get(list)?.count ?? 0])
    return Object.fromEntries(counts) as SpooledArchive['counts']
  }

  /** The bytes of all lists. */
  bytes(): number {
    let bytes = 0
    for (const file of this.#files.values()) bytes += file.bytes
    return bytes
  }

  async flush(): Promise<void> {
    for (const list of SPOOLED_LISTS) await flushFile(await this.#file(list))
  }

  async close(): Promise<void> {
    for (const { handle } of this.#files.values()) await handle.close()
  }

  #checkCounts(): void {
    const count = (list: SpooledList) => this.#files.get(list)?.count ?? 0
    requireMax('posts', count('posts'), IMPORT_LIMITS.posts)
    requireMax('contacts', count('contacts'), IMPORT_LIMITS.contacts)
    requireMax('aspects', count('contact_groups'), IMPORT_LIMITS.aspects)
    for (const list of LISTS_OF_MARKS) requireMax(list, count(list), IMPORT_LIMITS.marks)
    requireMax('items', this.#readItems, IMPORT_LIMITS.items)
    let photos = 0
    for (const each of this.#files.values()) photos += each.photos
    requireMax('photos', photos, IMPORT_LIMITS.photoEntries)
  }

  async #file(list: SpooledList): Promise<SpoolFile> {
    const openFile = this.#files.get(list)
    if (openFile !== undefined) return openFile
    const file = {
      handle: await open(join(this.#folder, list), 'a', 0o600),
      pending: '',
      count: 0,
      photos: 0,
      bytes: 0,
    }
    this.#files.set(list, file)
    return file
  }
}

function requireMax(items: string, count: number, max: number): void {
  if (count > max) throw new ArchiveError('too_many', `The archive has more than ${max} ${items}.`)
}

async function flushFile(file: SpoolFile): Promise<void> {
  if (file.pending !== '') await file.handle.appendFile(file.pending)
  file.pending = ''
}

/** One item may name tens of thousands of photos, and their names are kept in memory. */
function countPhotos(list: SpooledList, value: unknown): number {
  if (list === 'photos') return 1
  const photos = list === 'posts' ? readMembers(readMembers(value)?.['entity_data'])?.['photos'] : undefined
  return Array.isArray(photos) ? photos.length : 0
}

function isComment(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'entity_type' in value && value.entity_type === 'comment'
}
