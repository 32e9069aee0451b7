import { TEXT_LIMITS } from '../../../domain/limits.js'
import { firstCharacters, isWithinLength } from '../../../protocol/values.js'
import { cleanText } from '../../../protocol/xml/xml.js'
import { type ArchiveOwner, readMembers } from '../reading/archive-owner.js'
import { readItems } from '../reading/items-of-version.js'
import { type SpooledArchive, spooledBatches } from '../reading/spool-archive.js'

const MAX_CHARACTERS = TEXT_LIMITS.aspectNameCharacters

/** Aspects whose names are made distinct, so that the record of an import stays small. */
const MAX_DISTINCT_NAMES = 1_000

/** The longest name that diaspora* stores. */
const MAX_UNCUT_CHARACTERS = 255

/** The stored names of aspects whose cut name another aspect of the archive has, by the whole name in lower case. */
export type DistinctAspectNames = Readonly<Record<string, string>>

/**
 * Finds the aspects of an archive that would have the same name here, because longer names are cut. The second one gets a number: two
 * aspects are never merged, because their contacts read different posts.
 */
export async function listDistinctAspectNames(
  { folder }: Pick<SpooledArchive, 'folder'>,
  { version, address }: Pick<ArchiveOwner, 'version' | 'address'>,
): Promise<DistinctAspectNames> {
  const names = new Map<string, string>()
  for await (const { items } of spooledBatches(folder, 'contact_groups')) {
    for (const { value } of readItems({ version, oldAddress: address }, 'contact_groups', items)) {
      const name = readUncutName(readMembers(value)?.['name'])
      const key = name?.toLowerCase()
      if (name !== undefined && key !== undefined && !names.has(key)) names.set(key, name)
    }
  }
  const takenNames = new Set([...names.keys()].filter((name) => isWithinLength(name, MAX_CHARACTERS)))
  const distinct: Record<string, string> = {}
  let distinctCount = 0
  for (const [key, name] of names) {
    if (isWithinLength(name, MAX_CHARACTERS)) continue
    const shortName = shortenName(name)
    if (!takenNames.has(shortName.toLowerCase())) takenNames.add(shortName.toLowerCase())
    else if (distinctCount < MAX_DISTINCT_NAMES) {
      distinctCount += 1
      distinct[key] = addNumber(name, takenNames)
      takenNames.add(distinct[key].toLowerCase())
    }
  }
  return distinct
}

/** The name of an aspect as this pod stores it: longer ones are cut. Undefined: no name. */
export function readAspectName(
  { aspectNames }: { readonly aspectNames: DistinctAspectNames },
  value: unknown,
): string | undefined {
  const name = readUncutName(value)
  if (name === undefined) return undefined
  const key = name.toLowerCase()
  return Object.hasOwn(aspectNames, key) ? aspectNames[key] : shortenName(name)
}

function readUncutName(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const name = firstCharacters(cleanText(value), MAX_UNCUT_CHARACTERS).trim()
  return name === '' ? undefined : name
}

function shortenName(name: string, length: number = MAX_CHARACTERS): string {
  return firstCharacters(name, length).trim()
}

function addNumber(name: string, taken: ReadonlySet<string>): string {
  for (let number = 2; ; number += 1) {
    const suffix = ` ${number}`
    const candidate = shortenName(name, MAX_CHARACTERS - suffix.length) + suffix
    if (!taken.has(candidate.toLowerCase())) return candidate
  }
}
