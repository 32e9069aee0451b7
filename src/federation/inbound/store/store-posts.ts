import type { Knex } from 'knex'
import { readMentionedAddresses, readTagNames } from '../../../domain/posts/texts.js'
import {
  findPostAuthors,
  insertLocations,
  insertPolls,
  insertPosts,
  insertPostVisibilities,
  type ReceivedPhoto,
  type ReceivedPost,
  upsertPostPhotos,
} from '../../../persistence/inbound/insert-posts.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tag } from '../../../persistence/models/tag.js'
import type { PhotoEntity, ReshareEntity, StatusMessageEntity } from '../../../protocol/entities/posts.js'
import { firstCharacters } from '../../../protocol/values.js'
import type {
  IgnoredMessage,
  RejectedMessage,
  StorableMessage,
  StoredRecord,
  StoreResult,
  VerifiedMessage,
} from '../batch.js'
import { firstOfEachGuid } from './first-of-each-guid.js'
import { validPixels } from './photo-values.js'
import { plausibleTime } from './plausible-time.js'

/**
 * Stores posts with their photos, polls, locations, tags and mentions. Private posts become visible to their recipients: a private post
 * arrives once for each local recipient.
 */
export async function storeStatusMessages(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<StatusMessageEntity>[],
  now: Date,
): Promise<StoreResult<StatusMessageEntity>> {
  const storeResult = await storePosts(transaction, messages, (message) => {
    const { text, provider_display_name: provider, embed } = message.entity
    return {
      type: 'StatusMessage',
      public: message.entity.public,
      text,
      providerDisplayName: provider === undefined ? undefined : firstCharacters(provider, MAX_PROVIDER_CHARACTERS),
      embed: embed === undefined ? undefined : { ...embed, type: undefined },
      createdAt: timeOf(message, now),
    }
  })
  await storeParts(transaction, storeResult.records, now)
  const postVisibilities = await insertPostVisibilities(
    transaction,
    messages.flatMap(({ recipient, entity: { guid, author } }) =>
      recipient === undefined ? [] : [{ guid, author, userId: recipient.userId }],
    ),
  )
  return { ...storeResult, newlyVisible: postVisibilities }
}

/** Stores reshares of known posts, one for each person and root. */
export async function storeReshares(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ReshareEntity>[],
  now: Date,
): Promise<StoreResult<ReshareEntity>> {
  return storePosts(transaction, messages, (message) => ({
    type: 'Reshare',
    public: true,
    text: '',
    rootGuid: message.entity.root_guid,
    createdAt: timeOf(message, now),
  }))
}

const MAX_PROVIDER_CHARACTERS = 255

/** The unique index on the guid decides between concurrent posts. A post that it refuses is a repeat, or has the guid of another author. */
async function storePosts<Entity extends StatusMessageEntity | ReshareEntity>(
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<Entity>[],
  columnsOf: (message: StorableMessage<Entity>) => Omit<ReceivedPost, 'guid' | 'author' | 'trace'>,
): Promise<StoreResult<Entity>> {
  const byGuid = firstOfEachGuid(messages)
  const rows = [...byGuid.values()].map((message) => {
    return {
      guid: message.entity.guid,
      author: message.entity.author,
      trace: message.inbound.trace,
      ...columnsOf(message),
    }
  })
  const insertedRows = await insertPosts(transaction, rows)
  const records = insertedRows.flatMap(({ id, guid }): StoredRecord<Entity>[] => {
    const message = byGuid.get(guid)
    return message === undefined ? [] : [{ id, message }]
  })

  const storedMessages = new Set(records.map(({ message }) => message))
  const unstoredMessages = messages.filter((message) => !storedMessages.has(message))
  const authors = await findPostAuthors(
    transaction,
    unstoredMessages.map(({ entity }) => entity.guid),
  )
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  const redelivered: StoredRecord<Entity>[] = []
  for (const message of unstoredMessages) {
    const { inbound, entity } = message
    const post = authors.get(entity.guid)
    if (post === undefined) {
      ignored.push({
        inbound,
        message,
        reason: 'it was retracted, or its root is deleted or was reshared by its author before',
      })
    } else if (post.address !== entity.author) {
      rejected.push({
        inbound,
        message,
        fault: 'InvalidAuthor',
        reason: `its guid belongs to a post by ${post.address}`,
      })
    } else if (inbound.fetchRequest === undefined && (entity.type === 'reshare' || entity.public)) {
      redelivered.push({ id: post.id, message })
    }
  }
  return { records, rejected, ignored, redelivered }
}

async function storeParts(
  transaction: Knex.Transaction,
  records: readonly StoredRecord<StatusMessageEntity>[],
  now: Date,
): Promise<void> {
  const parts = records.map(({ id, message }) => ({ postId: id, message, entity: message.entity }))
  const photos = parts.flatMap(({ postId, message, entity }) => photosOf(postId, message, entity.photos, now))
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
    parts.map(({ postId, message, entity }) => {
      return {
        postId,
        createdAt: timeOf(message, now),
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

function photosOf(
  postId: number,
  message: VerifiedMessage,
  photos: readonly PhotoEntity[],
  now: Date,
): ReceivedPhoto[] {
  return photos.map((photo, position) => ({
    guid: photo.guid,
    postId,
    position,
    text: photo.text,
    remotePath: photo.remote_photo_path,
    name: photo.remote_photo_name,
    height: validPixels(photo.height),
    width: validPixels(photo.width),
    createdAt: plausibleTime(photo.created_at, message.inbound.acceptedAt, now),
  }))
}

function timeOf({ entity, inbound }: StorableMessage<StatusMessageEntity | ReshareEntity>, now: Date): Date {
  return plausibleTime(entity.created_at, inbound.acceptedAt, now)
}
