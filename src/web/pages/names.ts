import { type NamedInTexts, namedIn } from '../../domain/public-posts.js'
import type { Pod } from '../../pod.js'
import { presentName } from '../presenters/people.js'
import type { Names } from '../text/write-html.js'

const POSTS: readonly string[] = ['post', 'status_message', 'reshare']

/** Looks up what some texts name, all of it at once. */
export async function namesIn(pod: Pick<Pod, 'db'>, texts: readonly string[]): Promise<Names> {
  return asNames(await namedIn(pod, texts))
}

function asNames({ people, posts }: NamedInTexts): Names {
  return {
    personOf({ address, name }) {
      const person = people.get(address)
      return person && { path: `/people/${person.guid}`, name: name ?? presentName(person) }
    },
    // A link may claim any author; it only leads on if that is true.
    entityOf({ author, type, guid }) {
      return POSTS.includes(type) && posts.get(guid) === author ? { path: `/posts/${guid}` } : undefined
    },
  }
}
