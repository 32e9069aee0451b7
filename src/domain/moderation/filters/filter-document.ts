import type { FilterField } from '../../../persistence/moderation/filters.js'
import { readTagNames } from '../../posts/texts.js'

/** The fields of a post, comment, message or profile that filters compare. */
export interface FilterDocument {
  readonly type: 'post' | 'comment' | 'person' | 'message'
  readonly guid: string
  readonly author: string
  readonly isPublic: boolean
  readonly texts: readonly FilterText[]
}

interface FilterText {
  readonly field: FilterField
  readonly text: string
}

type Identity = Pick<FilterDocument, 'guid' | 'author' | 'isPublic'>

export function postDocument(
  identity: Identity,
  { text, poll }: { readonly text: string; readonly poll?: readonly string[] | undefined },
): FilterDocument {
  const pollTexts = (poll ?? []).map((each) => ({ field: 'poll', text: each }) as const)
  return { ...identity, type: 'post', texts: [{ field: 'post', text }, ...tagTexts(readTagNames(text)), ...pollTexts] }
}

export function commentDocument(identity: Identity, text: string): FilterDocument {
  return { ...identity, type: 'comment', texts: [{ field: 'comment', text }, ...tagTexts(readTagNames(text))] }
}

/** Messages of a conversation, with its subject if it begins with them. */
export function messageDocument(identity: Omit<Identity, 'isPublic'>, texts: readonly string[]): FilterDocument {
  return { ...identity, isPublic: false, type: 'message', texts: texts.map((text) => ({ field: 'message', text })) }
}

export function profileDocument(
  identity: Omit<Identity, 'isPublic'>,
  { name, bio, tags }: { readonly name: string; readonly bio: string; readonly tags: readonly string[] },
): FilterDocument {
  const texts = [{ field: 'name', text: name } as const, { field: 'bio', text: bio } as const]
  return { ...identity, isPublic: true, type: 'person', texts: [...texts, ...tagTexts(tags)] }
}

function tagTexts(names: readonly string[]): readonly FilterText[] {
  return names.map((text) => ({ field: 'tag', text }))
}
