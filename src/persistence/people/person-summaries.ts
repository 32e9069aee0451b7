import type { Person } from '../models/person.js'
import { type ColumnLists, columnForm, number, text, textOrNull, valueAt, type Written } from '../sql/column-lists.js'
import type { Belonging } from '../sql/group-by-owner.js'

export type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** Of `people`. */
export const personColumns = {
  id: number('people.id'),
  guid: text('guid'),
  address: text('address'),
  name: text('name'),
  avatarUrl: textOrNull('avatar_url'),
}

const form = columnForm(personColumns)

/**
 * Everybody who is named on a page, once, as part of a statement that lists it; by an array of their ids. To look each of them
 * up where they are named costs more, and in a join the planner would read all the people of a small pod.
 */
export function peopleOf(ids: string): string {
  return `(select ${form.select} from people where id = any(${ids}))`
}

export type FindPerson = (id: number) => PersonSummary

/** Finds them again by their ids. */
export function personAmong(people: Written): FindPerson {
  const { id: ids, guid, address, name, avatarUrl } = form.read(people)
  const byId = new Map<number, PersonSummary>()
  ids.forEach((id, place) => {
    byId.set(id, {
      guid: valueAt(guid, place),
      address: valueAt(address, place),
      name: valueAt(name, place),
      avatarUrl: valueAt(avatarUrl, place),
    })
  })
  return (id) => {
    const person = byId.get(id)
    if (person === undefined) throw new Error(`Person ${id} is named on a page and not among its people.`)
    return person
  }
}

/** Somebody who belongs to one of the things on a page. */
export type PersonOfOne = Belonging & { readonly personId: number }

/** The people of each thing on a page, in their order, by its id. */
export function peopleOfEach(
  { ownerId, personId }: ColumnLists<PersonOfOne>,
  person: FindPerson,
): (ownerId: number) => readonly PersonSummary[] {
  const groups = new Map<number, PersonSummary[]>()
  ownerId.forEach((owner, place) => {
    const one = person(valueAt(personId, place))
    const group = groups.get(owner)
    if (group === undefined) groups.set(owner, [one])
    else group.push(one)
  })
  return (id) => groups.get(id) ?? []
}
