import type { Person } from '../../persistence/models/person.js'
import { presentName } from '../presenters/people.js'
import type { Names } from '../text/write-html.js'

const POSTS: readonly string[] = ['post', 'status_message', 'reshare']

/** The people and public posts that texts name and this pod knows. */
export interface NamedEntities {
  readonly people: ReadonlyMap<string, Pick<Person, 'guid' | 'name' | 'address'>>
  /** The newest addresses of people who have moved. */
  readonly newest: ReadonlyMap<string, string>
  /** Addresses of the authors, by guid of the post. */
  readonly posts: ReadonlyMap<string, string>
}

export function namesFrom({ people, newest, posts }: NamedEntities): Names {
  return {
    personOf({ address, name }) {
      const person = people.get(address)
      return person && { path: `/people/${person.guid}`, name: name ?? presentName(person) }
    },
    // A link may claim any author; it leads to the post only if the claim is true.
    entityOf({ author, type, guid }) {
      return POSTS.includes(type) && posts.get(guid) === (newest.get(author) ?? author)
        ? { path: `/posts/${guid}` }
        : undefined
    },
  }
}
