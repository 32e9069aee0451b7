import { byteLimit, choice, limit, number, setting } from '../schemas.js'

export const REQUEST_VARIABLES = {
  CLIENT_API_DIALECT: setting(
    choice(['standard', 'diaspora'], 'standard'),
    'The API dialect of clients without a dialect of their own. `diaspora` is for apps written against diaspora\\*: errors have the messages of its API documentation, and four responses have the shape that diaspora\\* returns (a created comment, a new conversation, a marked conversation, the type of a comment notification). A client sets its dialect with `client_api_dialect` in its registration; the operator sets it with `pod clients dialect <client_id> diaspora`, and `pod token --dialect` for a single token',
  ),
  SIGN_IN_LIMIT: setting(
    limit(20),
    'Per network address and web process: failed sign-ins per 5 minutes, and sign-ups likewise. 0: unlimited',
  ),
  CLIENT_LIMIT: setting(limit(20), 'Per network address and web process: client registrations per hour. 0: unlimited'),
  TOKEN_LIMIT: setting(limit(120), 'Per network address and web process: token requests per minute. 0: unlimited'),
  AUTHORIZATION_LIMIT: setting(
    limit(60),
    'Per network address and web process: authorization requests per 5 minutes. 0: unlimited',
  ),
  PAGE_LIMIT: setting(
    limit(300),
    'Per network address and web process: requests for public pages, feeds and oEmbed per minute. 0: unlimited',
  ),
  WRITE_LIMIT: setting(
    limit(600),
    'Per user and web process: successful writes (create, change, delete) per minute, over all clients of the user. 0: unlimited',
  ),
  PHOTO_BYTES: setting(
    number(64 * 2 ** 10, 64 * 2 ** 20, 10 * 2 ** 20, 'bytes'),
    'Maximum size of one uploaded picture',
  ),
  POD_BYTES_PER_DAY: setting(
    byteLimit(2 ** 31),
    'Maximum bytes that the people of one other pod may send per day (UTC). Beyond it, messages are ignored, except retractions, contacts, account deletions and account migrations. 0: unlimited',
  ),
  PHOTO_QUOTA: setting(
    byteLimit(2 ** 30),
    "Maximum disk space of one user's pictures, in all sizes. With photos of imported archives it may be twice `IMPORT_PHOTO_BYTES`. 0: unlimited",
  ),
  INBOUND_BYTES: setting(
    {
      type: 'integer',
      minimum: 16 * 2 ** 20,
      maximum: 2 ** 40,
      default: 256 * 2 ** 20,
      description: 'a number of bytes from 16777216, two of the largest messages, to 1099511627776',
    },
    'Maximum bytes of messages from other pods that are accepted but not yet stored. Beyond it, senders get 503 and retry later',
  ),
} as const
