import type { Knex } from 'knex'
import { enqueueAnnouncement } from '../../../domain/notifications/announcements.js'
import { notifyAbout } from '../../../domain/notifications/notifications.js'
import { readMentionedAddresses, readTagNames } from '../../../domain/posts/texts.js'
import {
  type ArrivedPhoto,
  type ArrivedPost,
  findPostAuthors,
  insertLocations,
  insertNewPosts,
  insertPolls,
  insertPostVisibilities,
  upsertPostPhotos,
} from '../../../persistence/inbound/insert-posts.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tag } from '../../../persistence/models/tag.js'
import type { Pod } from '../../../pod/pod.js'
import type { PhotoEntity, ReshareEntity, StatusMessageEntity } from '../../../protocol/entities/posts.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoredRecord, StoreResult } from '../batch.js'
import { validPixels } from './photo-values.js'
import { plausibleTime } from './plausible-time.js'

/** Stores posts with their photos, polls, locations, tags and mentions. */
export async function storeStatusMessages(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<StatusMessageEntity>[],
  now: Date,
  pod: Pod,
): Promise<StoreResult<StatusMessageEntity>> {
  const stored = await storePosts(transaction, arrivals, (arrival) => {
    const { text, provider_display_name: provider, embed } = arrival.entity
    return {
      type: 'StatusMessage',
      public: arrival.entity.public,
      text,
      providerDisplayName:
        provider === undefined ? undefined : [...provider].slice(0, MAX_PROVIDER_CHARACTERS).join(''),
      embed: embed === undefined ? undefined : { ...embed, type: undefined },
      createdAt: timeOf(arrival, now),
    }
  })
  await storeParts(transaction, stored.records, now)
  await showToRecipients(pod, transaction, arrivals, stored, now)
  return stored
}

/** Stores reshares of known posts, one for each person and root. */
export async function storeReshares(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ReshareEntity>[],
  now: Date,
): Promise<StoreResult<ReshareEntity>> {
  return storePosts(transaction, arrivals, (arrival) => ({
    type: 'Reshare',
    public: true,
    text: '',
    rootGuid: arrival.entity.root_guid,
    createdAt: timeOf(arrival, now),
  }))
}

const MAX_PROVIDER_CHARACTERS = 255

/** The unique index on the guid decides between concurrent posts. A post that it refuses is a repeat, or has the guid of another author. */
async function storePosts<Entity extends StatusMessageEntity | ReshareEntity>(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<Entity>[],
  columnsOf: (arrival: Arrival<Entity>) => Omit<ArrivedPost, 'guid' | 'author' | 'trace'>,
): Promise<StoreResult<Entity>> {
  const byGuid = new Map(arrivals.toReversed().map((arrival) => [arrival.entity.guid, arrival])) // the first of each counts
  const rows = [...byGuid.values()].map((arrival) => {
    return {
      guid: arrival.entity.guid,
      author: arrival.entity.author,
      trace: arrival.message.trace,
      ...columnsOf(arrival),
    }
  })
  const inserted = await insertNewPosts(transaction, rows)
  const records = inserted.flatMap(({ id, guid }): StoredRecord<Entity>[] => {
    const arrival = byGuid.get(guid)
    return arrival === undefined ? [] : [{ id, arrival }]
  })

  const storedArrivals = new Set(records.map(({ arrival }) => arrival))
  const others = arrivals.filter((arrival) => !storedArrivals.has(arrival))
  const authors = await findPostAuthors(
    transaction,
    others.map(({ entity }) => entity.guid),
  )
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of others) {
    const { message, entity } = arrival
    const author = authors.get(entity.guid)
    if (author === undefined) {
      ignored.push({
        message,
        arrival,
        reason: 'it was retracted, or its root is deleted or was reshared by its author before',
      })
    } else if (author !== entity.author) {
      rejected.push({ message, arrival, fault: 'InvalidAuthor', reason: `its guid belongs to a post by ${author}` })
    }
  }
  return { records, rejected, ignored }
}

/** Shows private posts to their recipients: a private post arrives once for each local recipient. */
async function showToRecipients(
  pod: Pod,
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<StatusMessageEntity>[],
  { records }: StoreResult<StatusMessageEntity>,
  now: Date,
): Promise<void> {
  const shown = await insertPostVisibilities(
    transaction,
    arrivals.flatMap(({ recipient, entity: { guid, author } }) =>
      recipient === undefined ? [] : [{ guid, author, userId: recipient.userId }],
    ),
  )
  const isNew = new Set(records.map(({ id }) => id))
  // Recipients of a new post are notified with the batch.
  const delivered = shown.filter(({ postId }) => !isNew.has(postId))
  const notifications = await notifyAbout(transaction, { delivered }, now)
  await enqueueAnnouncement(pod, transaction, { notifications, shown })
}

async function storeParts(
  transaction: Knex.Transaction,
  records: readonly StoredRecord<StatusMessageEntity>[],
  now: Date,
): Promise<void> {
  const parts = records.map(({ id, arrival }) => ({ postId: id, arrival, entity: arrival.entity }))
  const photos = parts.flatMap(({ postId, arrival, entity }) => photosOf(postId, arrival, entity.photos, now))
  await upsertPostPhotos(transaction, [...new Map(photos.map((photo) => [photo.guid, photo])).values()])
  await insertPolls(
    transaction,
    parts.flatMap(({ postId, entity: { poll } }) =>
      poll === undefined ? [] : [{ guid: poll.guid, postId, question: poll.question, answers: poll.poll_answers }],
    ),
  )
  await insertLocations(
    transaction,
    parts.flatMap(({ postId, entity: { location } }) => (location === undefined ? [] : [{ postId, ...location }])),
  )
  await Tag.attachToAll(
    transaction,
    parts.map(({ postId, arrival, entity }) => {
      return {
        postId,
        createdAt: timeOf(arrival, now),
        isPublic: entity.public,
        names: readTagNames(entity.text),
      }
    }),
  )
  await Mention.attachToAll(
    transaction,
    parts.map(({ postId, entity }) => ({
      postId,
      addresses: readMentionedAddresses(entity.text),
    })),
  )
}

function photosOf(postId: number, arrival: Arrival, photos: readonly PhotoEntity[], now: Date): ArrivedPhoto[] {
  return photos.map((photo, position) => ({
    guid: photo.guid,
    postId,
    position,
    text: photo.text,
    remotePath: photo.remote_photo_path,
    name: photo.remote_photo_name,
    height: validPixels(photo.height),
    width: validPixels(photo.width),
    createdAt: plausibleTime(photo.created_at, arrival.message.acceptedAt, now),
  }))
}

function timeOf({ entity, message }: Arrival<StatusMessageEntity | ReshareEntity>, now: Date): Date {
  return plausibleTime(entity.created_at, message.acceptedAt, now)
}
