import { type AggregatedColumns, aggregateColumns, numberColumn } from '../sql/column-lists.js'

/** Actions of a viewer on the items of a page, such as liked or reported. */
interface ViewerActionsAggregate<Action extends string> {
  /** A scalar subquery for the statement that lists the items. */
  readonly select: string
  /** The ids of the items by action. */
  decode(value: AggregatedColumns): Readonly<Record<Action, ReadonlySet<number>>>
}

/** Aggregates all actions in one list. Each action is given as the end of a select: `post_id as id from likes where …`. */
export function aggregateViewerActions<Action extends string>(
  selectIds: Readonly<Record<Action, string>>,
): ViewerActionsAggregate<Action> {
  const actions = Object.keys(selectIds) as Action[] // has no other keys
  const aggregate = aggregateColumns<{ readonly action: number; readonly id: number }>({
    action: numberColumn('action'),
    id: numberColumn('id'),
  })
  const selects = Object.values<string>(selectIds).map((ids, action) => `select ${action} as action, ${ids}`)
  return {
    select: `(select ${aggregate.select} from (${selects.join(' union all ')}) as viewer_actions)`,
    decode(value) {
      const { action: actionNumbers, id: ids } = aggregate.decode(value)
      const idsByAction = {} as Record<Action, ReadonlySet<number>>
      actions.forEach((action, number) => {
        idsByAction[action] = new Set(ids.filter((_, index) => actionNumbers[index] === number))
      })
      return idsByAction
    },
  }
}
