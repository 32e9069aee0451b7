import { type Static, Type } from 'typebox'
import { Message } from './conversations.js'
import { Notification } from './notifications.js'
import { Post } from './posts.js'
import { refTo } from './references.js'

export const LiveMessage = Type.Object(
  { ...Message.properties, conversation_guid: Type.String({ description: 'The conversation of the message.' }) },
  { $id: 'LiveMessage', description: 'A message, as an event of `GET /streaming` carries it.' },
)

export const LiveCase = Type.Object(
  {
    id: Type.Integer(),
    state: Type.Enum(['open', 'taken', 'resolved', 'dismissed']),
    kind: Type.Enum(['report', 'filter', 'cluster']),
    reports: Type.Integer({ description: 'The number of reports.' }),
  },
  { $id: 'LiveCase', description: 'A case that is new or has changed, for moderators and admins. It has no text.' },
)

export const StreamReset = Type.Object(
  {
    reason: Type.Enum(['unknown', 'too_old', 'too_many'], {
      description:
        '`unknown`: the pod does not know the id that the client sent. `too_old`: the events since that id are deleted. `too_many`: there are too many events since that id.',
    }),
  },
  { $id: 'StreamReset', description: 'Events are missing here. Read the lists; after this event nothing is missing.' },
)

/** The `data` of each event, by the name of the event. */
export const StreamEvents = Type.Object(
  {
    notification: refTo(Notification),
    message: refTo(LiveMessage),
    post: refTo(Post),
    moderation_case: refTo(LiveCase),
    reset: refTo(StreamReset),
  },
  {
    $id: 'StreamEvents',
    description:
      'The events of `GET /streaming`: each property is the name of an event, its value the `data` of that event.',
  },
)

type EventData = Static<typeof StreamEvents>[keyof Static<typeof StreamEvents>]

export const StreamEventData = Type.Unsafe<EventData>({
  $id: 'StreamEventData',
  description: 'The `data` of one event. `StreamEvents` says which name of an event belongs to which.',
  anyOf: [refTo(Notification), refTo(LiveMessage), refTo(Post), refTo(LiveCase), refTo(StreamReset)],
})
