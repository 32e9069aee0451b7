import type { AttackLoad } from './attack-sender.js'
import { commentOf, envelopeOf, type HostilePod, newGuid, postOf } from './hostile-pod.js'

/** An attack on the pod while ordinary traffic continues. */
interface Attack {
  /** Duration of the ordinary traffic. The attack may end earlier. */
  readonly seconds: number
  /** Prepares the requests of the attack. `parentGuid` is a public post of alice that gina's pod subscribes to. */
  prepare(pod: HostilePod, parentGuid: string, strength: number): Promise<readonly AttackLoad[]>
}

/** Sizes of the attacks at strength 1. */
const SIZES = {
  lookUps: 20,
  hostileEnvelopes: 150,
  madeUpSigners: 2_000,
  misdirectedPosts: 6_000,
  longComments: 50,
  longCommentCharacters: 65_535,
  pageReaders: 4,
  commentsOfBatch: 220_000,
  tagsOfBatch: 50,
  floodComments: 3_000,
} as const

export const ATTACKS: Readonly<Record<string, Attack>> = {
  /** Documents that are expensive to parse, by anonymous lookups and by unsigned envelopes. */
  hcard: {
    seconds: SIZES.lookUps,
    async prepare({ gina, hosts }, _parentGuid, strength) {
      const template = postOf(gina).envelope
      const lookUps = range(SIZES.lookUps).map((index) => {
        const query = encodeURIComponent(`lookup${index}@${hosts.evil}`)
        return { path: `/people?q=${query}`, body: '' }
      })
      const envelopes = range(SIZES.hostileEnvelopes * strength).map((index) =>
        message(withSender(template, `sender${index}@${hosts.evil}`)),
      )
      return [
        { method: 'GET', requests: lookUps, connections: 8, perSecond: 1 },
        { method: 'POST', requests: envelopes, connections: 8, perSecond: 50 },
      ]
    },
  },

  /** Made-up signers on two hosts that accept connections and never respond. */
  'fetch-lane': {
    seconds: 20,
    async prepare({ gina, hosts }, _parentGuid, strength) {
      const template = postOf(gina).envelope
      const requests = range(SIZES.madeUpSigners * strength).map((index) =>
        message(withSender(template, `nobody${index}@${index % 2 === 0 ? hosts.silent : hosts.silentToo}`)),
      )
      return [{ method: 'POST', requests, connections: 16, perSecond: 700 }]
    },
  },

  /** Public posts of a person whose WebFinger document names gina's pod as home. */
  'seed-location': {
    seconds: 20,
    async prepare(pod, _parentGuid, strength) {
      const mallory = await onlyPerson(pod.addPeople(['mallory'], 'evil', 'good'))
      const requests = range(SIZES.misdirectedPosts * strength).map(() => message(postOf(mallory).envelope))
      return [{ method: 'POST', requests, connections: 16, perSecond: 600 }]
    },
  },

  /** Long comments under a public post, and anonymous readers of its page. */
  'post-page': {
    seconds: 15,
    async prepare(pod, parentGuid, strength) {
      const mallory = await onlyPerson(pod.addPeople(['mallory'], 'evil'))
      await pod.register(mallory)
      await pod.db.raw(
        `insert into comments (guid, post_id, author_id, text, created_at)
         select md5('page' || i), posts.id, people.id, cast(:text as text), timestamptz '2000-01-01' + i * interval '1 s'
         from posts, people, generate_series(1, cast(:count as integer)) as i
         where posts.guid = :parentGuid and people.address = :address`,
        { text: longText(pod), count: SIZES.longComments, parentGuid, address: mallory.address },
      )
      await pod.db('posts').where({ guid: parentGuid }).increment('commentsCount', SIZES.longComments)
      const requests = [{ path: `/posts/${parentGuid}`, body: '' }]
      const connections = Math.ceil(SIZES.pageReaders * strength)
      return [{ method: 'GET', requests, connections, repeatForMs: this.seconds * 1_000 }]
    },
  },

  /** The retraction of a remote post with very many comments and tags. */
  'slow-batch': {
    seconds: 25,
    async prepare(pod, _parentGuid, strength) {
      const mallory = await onlyPerson(pod.addPeople(['mallory'], 'evil'))
      await pod.register(mallory)
      const guid = await addLongThread(pod, mallory.address, Math.ceil(SIZES.commentsOfBatch * strength))
      const retraction = envelopeOf(mallory, {
        type: 'retraction',
        author: mallory.address,
        target_guid: guid,
        target_type: 'Post',
      })
      return [{ method: 'POST', requests: [message(retraction)], connections: 1 }]
    },
  },

  /** Small signed comments of one unknown person under a post that another pod subscribes to. */
  'comment-flood': {
    seconds: 20,
    async prepare(pod, parentGuid, strength) {
      const mallory = await onlyPerson(pod.addPeople(['mallory'], 'evil'))
      const requests = range(SIZES.floodComments * strength).map(() => message(commentOf(mallory, parentGuid).envelope))
      return [{ method: 'POST', requests, connections: 16, perSecond: 200 }]
    },
  },
}

/** Inserts a post with many comments and tags, without foreign key checks because of their number. */
async function addLongThread({ db }: HostilePod, address: string, count: number): Promise<string> {
  const guid = newGuid()
  await db.transaction(async (transaction) => {
    await transaction.raw('set local session_replication_role = replica')
    await transaction.raw(
      `with author as (select id from people where address = :address), post as (
         insert into posts (guid, author_id, type, public, text, comments_count)
         select :guid, id, 'StatusMessage', true, 'a post', :count from author
         returning id
       )
       insert into comments (guid, post_id, author_id, text)
       select md5('thread' || i), post.id, author.id, 'said under it #tag' || i % :tags
       from post, author, generate_series(1, cast(:count as integer)) as i`,
      { address, guid, count, tags: SIZES.tagsOfBatch },
    )
    await transaction.raw(
      `insert into tags (name) select 'tag' || i from generate_series(0, cast(:tags as integer) - 1) as i on conflict do nothing`,
      { tags: SIZES.tagsOfBatch },
    )
    await transaction.raw(
      `insert into taggings (tag_id, comment_id, created_at)
       select tags.id, comments.id, comments.created_at from comments
         join posts on posts.id = comments.post_id
         join tags on tags.name = substring(comments.text from '#(.*)$')
       where posts.guid = :guid`,
      { guid },
    )
  })
  await db.raw('analyze posts, comments, tags, taggings')
  return guid
}

/** Unclosed markup in a displayed field, followed by mentions that each need a lookup. */
function longText({ hosts }: HostilePod): string {
  const markup = '*a ~~b _c '.repeat(400)
  const names = range(4_000).map((index) => `@{n${index}@${hosts.evil}} `)
  return `${markup}${names.join('')}`.slice(0, SIZES.longCommentCharacters)
}

function withSender(envelope: string, address: string): string {
  return envelope.replace(/key_id="[^"]+"/, `key_id="${Buffer.from(address).toString('base64url')}"`)
}

function message(body: string): AttackLoad['requests'][number] {
  return { path: '/receive/public', body }
}

async function onlyPerson<Item>(items: Promise<readonly Item[]>): Promise<Item> {
  const [item] = await items
  if (item === undefined) throw new Error('addPeople returned no person.')
  return item
}

function range(length: number): readonly number[] {
  return Array.from({ length: Math.ceil(length) }, (_, index) => index)
}
