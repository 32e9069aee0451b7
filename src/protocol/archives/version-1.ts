import { createHash } from 'node:crypto'

type Members = Readonly<Record<string, unknown>>

/** Lists of version 1.0 whose items look different from those of 2.0. */
const CONVERSIONS: Readonly<Record<string, (item: Members, owner: string) => Members>> = {
  contacts: contactOfVersion1,
  posts: postOfVersion1,
  own_comments: commentOfVersion1,
}

/** The item of an archive of version 1.0 in the form of version 2.0. */
export function itemOfVersion1(list: string, item: unknown, owner: string): unknown {
  const convert = Object.hasOwn(CONVERSIONS, list) ? CONVERSIONS[list] : undefined
  if (convert === undefined || typeof item !== 'object' || item === null || Array.isArray(item)) return item
  return convert(item as Members, owner) // every object has members by name
}

function contactOfVersion1({ sharing, receiving, person_diaspora_handle, aspects }: Members): Members {
  const groups = Array.isArray(aspects) ? aspects : []
  const name = (group: unknown) => (typeof group === 'object' && group !== null && 'name' in group ? group.name : group)
  return { sharing, receiving, account_id: person_diaspora_handle, contact_groups_membership: groups.map(name) }
}

function postOfVersion1(
  { guid, text, public: isPublic, diaspora_handle, type, created_at }: Members,
  owner: string,
): Members {
  const author = diaspora_handle ?? owner
  const data = { author, guid: guid ?? guidOfVersion1(owner, created_at, text), created_at }
  if (type === 'Reshare') return { entity_type: 'reshare', entity_data: data }
  return {
    entity_type: 'status_message',
    entity_data: { ...data, public: isPublic ?? false, text: text ?? '', photos: [] },
  }
}

function commentOfVersion1({ guid, text, post_guid, created_at }: Members, owner: string): Members {
  const data = {
    author: owner,
    guid: guid ?? guidOfVersion1(owner, created_at, text),
    parent_guid: post_guid,
    text,
    created_at,
  }
  return { entity_type: 'comment', entity_data: data }
}

/** Early archives have no guids: the same item has the same guid in each import. */
function guidOfVersion1(owner: string, createdAt: unknown, text: unknown): string {
  const parts = [owner, createdAt, text].map((part) => (typeof part === 'string' ? part : ''))
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 32)
}
