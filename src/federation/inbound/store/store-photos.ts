import type { Knex } from 'knex'
import {
  type ArrivedSeparatePhoto,
  findPhotoAuthors,
  insertPhotoVisibilities,
  upsertPhotos,
} from '../../../persistence/inbound/insert-photos.js'
import type { PhotoEntity } from '../../../protocol/entities/posts.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoreResult } from '../batch.js'
import { isWebUrl, validPixels } from './photo-values.js'
import { plausibleTime } from './plausible-time.js'

/** Stores photos that were sent without a post: new ones, or changed texts, sizes and URLs of stored ones. */
export async function storePhotos(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<PhotoEntity>[],
  now: Date,
): Promise<StoreResult<PhotoEntity>> {
  const loadable = arrivals.filter(({ entity }) => isWebUrl(entity.remote_photo_path))
  const authors = new Map(
    await findPhotoAuthors(
      transaction,
      loadable.map(({ entity }) => entity.guid),
    ),
  )
  // Of several photos with one guid, the first decides about the author, and the last by that author has the values.
  const last = new Map<string, Arrival<PhotoEntity>>()
  for (const arrival of loadable) {
    const { guid, author } = arrival.entity
    const owner = authors.get(guid) ?? author
    authors.set(guid, owner)
    if (owner === author) last.set(guid, arrival)
  }
  const rows = await upsertPhotos(
    transaction,
    [...last.values()].map((arrival) => photoOf(arrival, now)),
  )
  const ids = new Map(rows.map(({ guid, id }) => [guid, id]))
  const accepted = loadable.filter(({ entity }) => authors.get(entity.guid) === entity.author && ids.has(entity.guid))
  await insertPhotoVisibilities(
    transaction,
    accepted.flatMap(({ entity, recipient }) => {
      const photoId = ids.get(entity.guid)
      return photoId === undefined || recipient === undefined ? [] : [{ photoId, userId: recipient.userId }]
    }),
  )

  const records = rows.flatMap(({ id, guid, isNew }) => {
    const arrival = last.get(guid)
    return arrival === undefined || !isNew ? [] : [{ id, arrival }]
  })
  const isAccepted = new Set(accepted)
  const others = arrivals.filter((arrival) => !isAccepted.has(arrival))
  const isByAuthor = ({ entity }: Arrival<PhotoEntity>) => authors.get(entity.guid) === entity.author
  return {
    records,
    rejected: others.filter((arrival) => !isByAuthor(arrival)).map(rejectedPhoto),
    ignored: others.filter(isByAuthor).map(ignoredPhoto),
  }
}

function photoOf({ entity, message }: Arrival<PhotoEntity>, now: Date): ArrivedSeparatePhoto {
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
    createdAt: plausibleTime(entity.created_at, message.acceptedAt, now),
  }
}

function ignoredPhoto(arrival: Arrival<PhotoEntity>): IgnoredMessage {
  return { message: arrival.message, arrival, reason: 'it was retracted, or its author has closed the account' }
}

function rejectedPhoto(arrival: Arrival<PhotoEntity>): RejectedMessage {
  const { message, entity } = arrival
  if (isWebUrl(entity.remote_photo_path)) {
    return { message, arrival, fault: 'InvalidAuthor', reason: 'its guid belongs to a photo of another author' }
  }
  return { message, arrival, fault: 'ValidationError', reason: 'its URL is not http or https' }
}
