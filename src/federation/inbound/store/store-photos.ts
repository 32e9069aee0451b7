import type { Knex } from 'knex'
import {
  type ArrivedSeparatePhoto,
  findPhotoAuthors,
  insertPhotoVisibilities,
  upsertPhotos,
} from '../../../persistence/inbound/insert-photos.js'
import type { PhotoEntity } from '../../../protocol/entities/posts.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoreResult } from '../batch.js'
import { isOnTheWeb, pixels } from './photo-facts.js'
import { plausibleTime } from './plausible-time.js'

/** Photos on their own: new ones, or new words, sizes and places of those that are here. */
export async function storePhotos(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<PhotoEntity>[],
  now: Date,
): Promise<StoreResult<PhotoEntity>> {
  const shown = arrivals.filter(({ entity }) => isOnTheWeb(entity.remote_photo_path))
  const authors = new Map(
    await findPhotoAuthors(
      transaction,
      shown.map(({ entity }) => entity.guid),
    ),
  )
  // Of several with one guid, the first says whose it is, and the last of theirs how it looks.
  const last = new Map<string, Arrival<PhotoEntity>>()
  for (const arrival of shown) {
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
  const theirs = shown.filter(({ entity }) => authors.get(entity.guid) === entity.author && ids.has(entity.guid))
  await insertPhotoVisibilities(
    transaction,
    theirs.flatMap(({ entity, recipient }) => {
      const photoId = ids.get(entity.guid)
      return photoId === undefined || recipient === undefined ? [] : [{ photoId, userId: recipient.userId }]
    }),
  )

  const records = rows.flatMap(({ id, guid, isNew }) => {
    const arrival = last.get(guid)
    return arrival === undefined || !isNew ? [] : [{ id, arrival }]
  })
  const taken = new Set(theirs)
  const others = arrivals.filter((arrival) => !taken.has(arrival))
  const isTheirs = ({ entity }: Arrival<PhotoEntity>) => authors.get(entity.guid) === entity.author
  return {
    records,
    rejected: others.filter((arrival) => !isTheirs(arrival)).map(wrongOf),
    ignored: others.filter(isTheirs).map(overOf),
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
    height: pixels(entity.height),
    width: pixels(entity.width),
    createdAt: plausibleTime(entity.created_at, message.acceptedAt, now),
  }
}

function overOf(arrival: Arrival<PhotoEntity>): IgnoredMessage {
  return { message: arrival.message, arrival, reason: 'it was taken back, or who took it has left' }
}

function wrongOf(arrival: Arrival<PhotoEntity>): RejectedMessage {
  const { message, entity } = arrival
  if (isOnTheWeb(entity.remote_photo_path)) {
    return { message, arrival, fault: 'InvalidAuthor', reason: 'its guid is that of a photo of somebody else' }
  }
  return { message, arrival, fault: 'ValidationError', reason: 'it lies nowhere on the web' }
}
