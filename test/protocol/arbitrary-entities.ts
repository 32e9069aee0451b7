import fc from 'fast-check'
import type { LocationEntity } from '../../src/protocol/entities/location.js'
import type { ProfileEntity } from '../../src/protocol/entities/people.js'
import type { PhotoEntity, PollEntity } from '../../src/protocol/entities/posts.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Elements, Relayable } from '../../src/protocol/entities/relayables.js'

const characters = (set: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...set), minLength, maxLength })

const lower = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Any text at all: every plane of Unicode, control characters, halves of surrogate pairs, markup, line ends. */
export function anyText(minLength = 0, maxLength = 60): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: 'binary', minLength, maxLength }),
    fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)), minLength, maxLength }),
    characters('<>&\'";]\r\n\t #\u0001é🦊', minLength, maxLength),
  )
}

const address: fc.Arbitrary<string> = fc
  .tuple(characters(`${lower}._-äß`, 1, 12), characters(`${lower}-ü`, 1, 12), fc.option(fc.nat(65_535)))
  .map(([name, host, port]) => `${name}@${host}.example${port === null ? '' : `:${port}`}`)

const guid: fc.Arbitrary<string> = fc
  .tuple(characters(`${lower}ABC-_@.:`, 15, 40), characters(lower, 1, 1))
  .map(([start, end]) => start + end)

const moment = fc.integer({ min: 0, max: 4_102_444_800 }).map((seconds) => new Date(seconds * 1_000))
const birthday = fc
  .date({ min: new Date('1004-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString().slice(0, 10))
const name = (maxCharacters: number) => anyText(1, maxCharacters).filter((text) => !text.includes(';'))
const url = characters(lower, 1, 10).map((path) => `https://pics.example/${path}/`)
const tags = fc.array(characters(lower, 1, 8), { minLength: 1, maxLength: 5 }).map((words) => `#${words.join(' #')}`)
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })
const type = <Name extends string>(name: Name) => fc.constant(name)

const location: fc.Arbitrary<LocationEntity> = fc.record({
  type: type('location'),
  address: anyText(),
  lat: anyText(1),
  lng: anyText(1),
})

const pollAnswer = fc.record({ type: type('poll_answer'), guid, answer: anyText(1) })

const poll: fc.Arbitrary<PollEntity> = fc.record({
  type: type('poll'),
  guid,
  question: anyText(1),
  poll_answers: fc.array(pollAnswer, { minLength: 2, maxLength: 4 }),
})

const embed = fc.oneof(
  fc.record({
    type: type('embed'),
    url,
    title: maybe(anyText(1)),
    description: maybe(anyText(1)),
    image: maybe(url),
    nothing: maybe(fc.constant(false)),
  }),
  fc.record({ type: type('embed'), nothing: fc.constant(true) }),
)

const event = fc.record({
  type: type('event'),
  author: address,
  guid,
  edited_at: maybe(moment),
  summary: anyText(1),
  description: maybe(anyText(1)),
  start: moment,
  end: maybe(moment),
  all_day: fc.boolean(),
  timezone: maybe(fc.constantFrom('Europe/Berlin', 'America/Argentina/San_Luis')),
  location: maybe(location),
})

const photoBy = (author: fc.Arbitrary<string>): fc.Arbitrary<PhotoEntity> =>
  fc.record({
    type: type('photo'),
    guid,
    author,
    public: fc.boolean(),
    created_at: moment,
    edited_at: maybe(moment),
    remote_photo_path: url,
    remote_photo_name: anyText(1),
    text: maybe(anyText(1)),
    status_message_guid: maybe(guid),
    height: maybe(fc.nat()),
    width: maybe(fc.nat()),
  })

const statusMessage = address.chain((author) =>
  fc.record({
    type: type('status_message'),
    author: fc.constant(author),
    guid,
    created_at: moment,
    public: fc.boolean(),
    provider_display_name: maybe(anyText(1)),
    text: anyText(),
    edited_at: maybe(moment),
    photos: fc.array(photoBy(fc.constant(author)), { maxLength: 2 }),
    location: maybe(location),
    poll: maybe(poll),
    event: maybe(event),
    embed: maybe(embed),
  }),
)

const reshare = fc.oneof(
  fc.record({
    type: type('reshare'),
    author: address,
    guid,
    created_at: moment,
    root_author: address,
    root_guid: guid,
  }),
  fc.record({ type: type('reshare'), author: address, guid, created_at: moment }),
)

const profile: fc.Arbitrary<ProfileEntity> = fc.record({
  type: type('profile'),
  author: address,
  edited_at: maybe(moment),
  full_name: maybe(name(35)),
  first_name: maybe(name(16)),
  last_name: maybe(name(16)),
  image_url: maybe(url),
  image_url_medium: maybe(url),
  image_url_small: maybe(fc.constant('/assets/user/default.png')),
  bio: maybe(anyText(1)),
  birthday: maybe(birthday),
  gender: maybe(anyText(1)),
  location: maybe(anyText(1)),
  searchable: fc.boolean(),
  public: fc.boolean(),
  nsfw: fc.boolean(),
  tag_string: maybe(tags),
})

const contact = fc
  .record({
    type: type('contact'),
    author: address,
    recipient: address,
    following: fc.boolean(),
    sharing: fc.boolean(),
    blocking: fc.boolean(),
  })
  .filter(({ following, sharing, blocking }) => !blocking || !(following || sharing))

const messageBy = (author: fc.Arbitrary<string>) =>
  fc.record({
    type: type('message'),
    author,
    guid,
    text: anyText(1),
    created_at: moment,
    edited_at: maybe(moment),
    conversation_guid: guid,
  })

const conversation = fc.tuple(address, fc.array(address, { minLength: 1, maxLength: 4 })).chain(([author, others]) =>
  fc.record({
    type: type('conversation'),
    author: fc.constant(author),
    guid,
    subject: anyText(1),
    created_at: moment,
    participants: fc.constant([author, ...others]),
    messages: fc.array(messageBy(fc.constant(author)), { maxLength: 3 }),
  }),
)

const relayed = { author: address, guid, parent_guid: guid, author_signature: maybe(anyText(1)) }

/** One arbitrary for every entity there is. */
export const arbitraryEntities = {
  status_message: statusMessage,
  reshare,
  photo: photoBy(address),
  comment: fc.record({
    type: type('comment'),
    ...relayed,
    text: anyText(1),
    created_at: moment,
    edited_at: maybe(moment),
  }),
  like: fc.record({
    type: type('like'),
    ...relayed,
    parent_type: fc.constantFrom('Post', 'Comment'),
    positive: fc.boolean(),
  }),
  poll_participation: fc.record({ type: type('poll_participation'), ...relayed, poll_answer_guid: guid }),
  event_participation: fc.record({
    type: type('event_participation'),
    ...relayed,
    status: fc.constantFrom('accepted', 'declined', 'tentative'),
    edited_at: maybe(moment),
  }),
  participation: fc.record({
    type: type('participation'),
    author: address,
    guid,
    parent_guid: guid,
    parent_type: type('Post'),
  }),
  profile,
  contact,
  conversation,
  message: messageBy(address),
  retraction: fc.record({
    type: type('retraction'),
    author: address,
    target_guid: guid,
    target_type: fc.constantFrom('Post', 'Photo', 'Comment', 'Like', 'PollParticipation', 'Participation', 'Person'),
  }),
  account_deletion: fc.record({ type: type('account_deletion'), author: address }),
  account_migration: fc
    .record({
      type: type('account_migration'),
      author: address,
      profile,
      signature: maybe(anyText(1)),
      old_identity: address,
      remote_photo_path: maybe(url),
    })
    .filter(({ old_identity, profile }) => old_identity !== profile.author)
    .map((migration) =>
      migration.author === migration.profile.author ? migration : { ...migration, old_identity: migration.author },
    ),
  event,
  location,
  embed,
  poll,
  poll_answer: pollAnswer,
} as const satisfies { readonly [Type in Entity['type']]: fc.Arbitrary<Extract<Entity, { readonly type: Type }>> }

export const arbitraryRelayable: fc.Arbitrary<Relayable> = fc.oneof(
  arbitraryEntities.comment,
  arbitraryEntities.like,
  arbitraryEntities.poll_participation,
  arbitraryEntities.event_participation,
)

/** Elements that no table knows, as other software may add them. */
export const foreignElements: fc.Arbitrary<Elements> = fc.uniqueArray(
  fc.tuple(
    fc.oneof(characters('abcxyzéß_', 1, 12), fc.constantFrom('__proto__', 'constructor', 'toString', 'type')),
    anyText(0, 40),
  ),
  { maxLength: 8, selector: ([name]) => name },
)
