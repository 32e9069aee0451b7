import { columnForm, number, type Written } from '../sql/column-lists.js'

/** What a reader may have done with the things on a page. */
interface ViewerActionsForm<Action extends string> {
  /** Part of the statement that lists them. */
  readonly select: string
  /** By what was done: the ids of those with which it was. */
  read(written: Written): Readonly<Record<Action, ReadonlySet<number>>>
}

/** All of it in one list, by where each is found, as `post_id as id from likes where …`. */
export function viewerActionsForm<Action extends string>(
  idsOf: Readonly<Record<Action, string>>,
): ViewerActionsForm<Action> {
  const actions = Object.keys(idsOf) as Action[] // it has no others
  const form = columnForm<{ readonly action: number; readonly id: number }>({
    action: number('action'),
    id: number('id'),
  })
  const each = Object.values<string>(idsOf).map((ids, action) => `select ${action} as action, ${ids}`)
  return {
    select: `(select ${form.select} from (${each.join(' union all ')}) as done)`,
    read(written) {
      const { action, id: ids } = form.read(written)
      const found = {} as Record<Action, ReadonlySet<number>>
      actions.forEach((name, number) => {
        found[name] = new Set(ids.filter((_, place) => action[place] === number))
      })
      return found
    },
  }
}
