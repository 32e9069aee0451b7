import { Type } from 'typebox'
import { NOTIFICATION_TYPES } from '../../persistence/models/notification.js'
import { Timestamp } from './formats.js'
import { PersonSummary } from './people.js'
import { refTo } from './references.js'

/** The name of `commented_on_post` in diaspora*, the only one that its clients know. */
export const COMMENTED_IN_DIASPORA = 'comment_on_post'

/** The types of notifications; `commented_on_post` is accepted under both names. */
export const NotificationTypeName = Type.Enum([...NOTIFICATION_TYPES, COMMENTED_IN_DIASPORA], {
  description: '`comment_on_post` is the name of `commented_on_post` in the API dialect `diaspora`.',
})

export const Notification = Type.Object(
  {
    guid: Type.String(),
    type: NotificationTypeName,
    read: Type.Boolean(),
    created_at: Timestamp,
    target: Type.Optional(
      Type.Object(
        { guid: Type.String(), author: refTo(PersonSummary) },
        { description: 'The post of the notification; absent if the notification is about a person.' },
      ),
    ),
    event_creators: Type.Array(refTo(PersonSummary), {
      minItems: 1,
      description: 'The people who caused the notification, in order; at most the first fifty.',
    }),
  },
  { $id: 'Notification', description: 'A notification.' },
)
