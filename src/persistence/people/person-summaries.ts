import type { Person } from '../models/person.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  type ColumnLists,
  nullableTextColumn,
  numberColumn,
  textColumn,
  valueAt,
} from '../sql/column-lists.js'
import type { OwnedItem } from '../sql/group-by-owner.js'

export type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** Of `people`. */
export const personColumns = {
  id: numberColumn('people.id'),
  guid: textColumn('guid'),
  address: textColumn('address'),
  name: textColumn('name'),
  avatarUrl: nullableTextColumn('avatar_url'),
}

const aggregate = aggregateColumns(personColumns)

/**
 * Everybody who is named on a page, once, as part of a statement that lists it; by an array of their ids. To look each of them
 * up where they are named costs more, and in a join the planner would read all the people of a small pod.
 */
export function selectPeople(ids: string): string {
  return `(select ${aggregate.select} from people where id = any(${ids}))`
}

export type FindPerson = (id: number) => PersonSummary

/** Finds them again by their ids. */
export function decodePeople(people: AggregatedColumns): FindPerson {
  const { id: ids, guid, address, name, avatarUrl } = aggregate.decode(people)
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
export type OwnedPerson = OwnedItem & { readonly personId: number }

/** The people of each thing on a page, in their order, by its id. */
export function groupPeopleByOwner(
  { ownerId, personId }: ColumnLists<OwnedPerson>,
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
