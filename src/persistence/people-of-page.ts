import type { PersonSummary } from './listed-posts.js'

/** Null: there is nobody. */
export type PeopleOfPage = readonly (PersonSummary & { readonly id: number })[] | null

/**
 * Everybody who is named on a page, once, as part of a statement that lists it; by a statement of ids. To look each of them up
 * where they are named costs more, and in a join the planner would read all the people of a small pod.
 */
export function peopleOf(ids: string): string {
  return `(
    select json_agg(person)
    from (
      select id, guid, address, name, avatar_url as "avatarUrl" from people where id = any(array(${ids}))
    ) as person
  )`
}

/** Finds them again by their ids. */
export function personAmong(people: PeopleOfPage = null): (id: number) => PersonSummary {
  const byId = new Map((people ?? []).map((person) => [person.id, person]))
  return (id) => {
    const person = byId.get(id)
    if (person === undefined) throw new Error(`Person ${id} is named on a page and not among its people.`)
    return person
  }
}
