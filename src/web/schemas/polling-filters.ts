import { type Static, Type } from 'typebox'
import { BooleanField, readBoolean } from './booleans.js'
import { readTime } from './times.js'

/** Query parameters of clients that poll for new items; a route spreads them into its own. */
export const onlyAfter = {
  only_after: Type.Optional(Type.String({ description: 'Only items that were created or changed after this time.' })),
}

export const onlyUnread = {
  only_unread: Type.Optional(
    Type.Unsafe<Static<typeof BooleanField>>({ ...BooleanField, description: '`true`: only unread items.' }),
  ),
}

const query = Type.Object({ ...onlyAfter, ...onlyUnread })

export function readOnlyAfter({ only_after }: Pick<Static<typeof query>, 'only_after'>): { readonly onlyAfter?: Date } {
  return only_after === undefined ? {} : { onlyAfter: readTime('only_after', only_after) }
}

/** `false` has the same effect as no parameter. */
export function readOnlyUnread({ only_unread = false }: Pick<Static<typeof query>, 'only_unread'>) {
  return { onlyUnread: readBoolean(only_unread) }
}
