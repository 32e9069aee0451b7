import { columnForm, number, type Written } from '../sql/column-lists.js'

/** What a reader may have done with the things on a page. */
interface DeedForm<Deed extends string> {
  /** Part of the statement that lists them. */
  readonly select: string
  /** By what was done: the ids of those with which it was. */
  read(written: Written): Readonly<Record<Deed, ReadonlySet<number>>>
}

/** All of it in one list, by where each is found, as `post_id as id from likes where …`. */
export function deedForm<Deed extends string>(idsOf: Readonly<Record<Deed, string>>): DeedForm<Deed> {
  const deeds = Object.keys(idsOf) as Deed[] // it has no others
  const form = columnForm<{ readonly deed: number; readonly id: number }>({ deed: number('deed'), id: number('id') })
  const each = Object.values<string>(idsOf).map((ids, deed) => `select ${deed} as deed, ${ids}`)
  return {
    select: `(select ${form.select} from (${each.join(' union all ')}) as done)`,
    read(written) {
      const { deed, id: ids } = form.read(written)
      const found = {} as Record<Deed, ReadonlySet<number>>
      deeds.forEach((name, number) => {
        found[name] = new Set(ids.filter((_, place) => deed[place] === number))
      })
      return found
    },
  }
}
