import { type Static, Type } from 'typebox'
import { BooleanField, readBoolean } from './booleans.js'
import { readTime } from './times.js'

/** What a client asks that looks again and again whether there is anything new; to be spread into the parameters of a route. */
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

/** False asks for all, as nothing does. */
export function readOnlyUnread({ only_unread = false }: Pick<Static<typeof query>, 'only_unread'>) {
  return { onlyUnread: readBoolean(only_unread) }
}
