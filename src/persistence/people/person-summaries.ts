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

/** Columns of `people`. */
export const personColumns = {
  id: numberColumn('people.id'),
  guid: textColumn('guid'),
  address: textColumn('address'),
  name: textColumn('name'),
  avatarUrl: nullableTextColumn('avatar_url'),
}

const aggregate = aggregateColumns(personColumns)

/**
 * Selects the people of a page, each once, as a scalar subquery; `ids` is an array expression. A lookup at each mention of a person costs
 * more, and with a join the planner reads all people of a small pod.
 */
export function peopleSql(ids: string): string {
  return `(select ${aggregate.select} from people where id = any(${ids}))`
}

export type FindPerson = (id: number) => PersonSummary

/** Decodes the people that `peopleSql` returned, for lookup by id. */
export function decodePeople(people: AggregatedColumns): FindPerson {
  const { id: ids, guid, address, name, avatarUrl } = aggregate.decode(people)
  const byId = new Map<number, PersonSummary>()
  ids.forEach((id, index) => {
    byId.set(id, {
      guid: valueAt(guid, index),
      address: valueAt(address, index),
      name: valueAt(name, index),
      avatarUrl: valueAt(avatarUrl, index),
    })
  })
  return (id) => {
    const person = byId.get(id)
    if (person === undefined) throw new Error(`Person ${id} belongs to an item of the page, but is not in its people.`)
    return person
  }
}

/** A person who belongs to an item of a page, such as a participant of a conversation. */
export type OwnedPerson = OwnedItem & { readonly personId: number }

/** Groups people by the id of their item and keeps their order. */
export function groupPeopleByOwner(
  { ownerId, personId }: ColumnLists<OwnedPerson>,
  findPerson: FindPerson,
): (ownerId: number) => readonly PersonSummary[] {
  const groups = new Map<number, PersonSummary[]>()
  ownerId.forEach((owner, index) => {
    const person = findPerson(valueAt(personId, index))
    const group = groups.get(owner)
    if (group === undefined) groups.set(owner, [person])
    else group.push(person)
  })
  return (id) => groups.get(id) ?? []
}
