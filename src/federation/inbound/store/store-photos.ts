import type { Knex } from 'knex'
import {
  findPhotoAuthors,
  insertPhotoVisibilities,
  type ReceivedSeparatePhoto,
  upsertPhotos,
} from '../../../persistence/inbound/insert-photos.js'
import type { PhotoEntity } from '../../../protocol/entities/posts.js'
import type { IgnoredMessage, RejectedMessage, StorableMessage, StoreResult } from '../batch.js'
import { isWebUrl, validPixels } from './photo-values.js'
import { plausibleTime } from './plausible-time.js'

/** Stores photos that were sent without a post: new ones, or changed texts, sizes and URLs of stored ones. */
export async function storePhotos(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<PhotoEntity>[],
  now: Date,
): Promise<StoreResult<PhotoEntity>> {
  const loadable = messages.filter(({ entity }) => isWebUrl(entity.remote_photo_path))
  const authors = new Map(
    await findPhotoAuthors(
      transaction,
      loadable.map(({ entity }) => entity.guid),
    ),
  )
  // Of several photos with one guid, the first decides about the author, and the last by that author has the values.
  const last = new Map<string, StorableMessage<PhotoEntity>>()
  for (const message of loadable) {
    const { guid, author } = message.entity
    const owner = authors.get(guid) ?? author
    authors.set(guid, owner)
    if (owner === author) last.set(guid, message)
  }
  const rows = await upsertPhotos(
    transaction,
    [...last.values()].map((message) => photoOf(message, now)),
  )
  const ids = new Map(rows.map(({ guid, id }) => [guid, id]))
  const acceptedMessages = loadable.filter(
    ({ entity }) => authors.get(entity.guid) === entity.author && ids.has(entity.guid),
  )
  await insertPhotoVisibilities(
    transaction,
    acceptedMessages.flatMap(({ entity, recipient }) => {
      const photoId = ids.get(entity.guid)
      return photoId === undefined || recipient === undefined ? [] : [{ photoId, userId: recipient.userId }]
    }),
  )

  const records = rows.flatMap(({ id, guid, isNew }) => {
    const message = last.get(guid)
    return message === undefined || !isNew ? [] : [{ id, message }]
  })
  const isAccepted = new Set(acceptedMessages)
  const unacceptedMessages = messages.filter((message) => !isAccepted.has(message))
  const isByAuthor = ({ entity }: StorableMessage<PhotoEntity>) => authors.get(entity.guid) === entity.author
  return {
    records,
    rejected: unacceptedMessages.filter((message) => !isByAuthor(message)).map(rejectedPhoto),
    ignored: unacceptedMessages.filter(isByAuthor).map(ignoredPhoto),
  }
}

function photoOf({ entity, inbound }: StorableMessage<PhotoEntity>, now: Date): ReceivedSeparatePhoto {
  return {
    guid: entity.guid,
    author: entity.author,
    public: entity.public,
    postGuid: entity.status_message_guid,
    text: entity.text,
    remotePath: entity.remote_photo_path,
    name: entity.remote_photo_name,
    height: validPixels(entity.height),
    width: validPixels(entity.width),
    createdAt: plausibleTime(entity.created_at, inbound.acceptedAt, now),
  }
}

function ignoredPhoto(message: StorableMessage<PhotoEntity>): IgnoredMessage {
  return {
    inbound: message.inbound,
    message,
    reason: 'it was retracted, or its author has closed the account',
  }
}

function rejectedPhoto(message: StorableMessage<PhotoEntity>): RejectedMessage {
  const { inbound, entity } = message
  if (isWebUrl(entity.remote_photo_path)) {
    return {
      inbound,
      message,
      fault: 'InvalidAuthor',
      reason: 'its guid belongs to a photo of another author',
    }
  }
  return { inbound, message, fault: 'ValidationError', reason: 'its URL is not http or https' }
}
