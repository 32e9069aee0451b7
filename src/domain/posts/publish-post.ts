import type { Knex } from 'knex'
import { findTrace, inRequestTransaction } from '../../persistence/database/transactions.js'
import { Mention } from '../../persistence/models/mention.js'
import { Photo } from '../../persistence/models/photo.js'
import { Poll } from '../../persistence/models/poll.js'
import { Location, Post } from '../../persistence/models/post.js'
import { Tag } from '../../persistence/models/tag.js'
import { addActivityEntries } from '../../persistence/notifications/activity.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { ownAspectIds } from '../contacts/aspects.js'
import { TEXT_LIMITS } from '../limits.js'
import { applyFilterEffects, requireUnfiltered } from '../moderation/filters/check-documents.js'
import { postDocument } from '../moderation/filters/filter-document.js'
import { newGuid } from '../new-guid.js'
import { enqueuePublication } from '../notifications/enqueue-live-events.js'
import { notifyAbout } from '../notifications/notifications.js'
import { Refusal } from '../refusals.js'
import { replaceNonRecipientMentions } from './non-recipient-mentions.js'
import { findTextFault, readMentionedAddresses, readTagNames } from './texts.js'

export interface NewPost {
  readonly text: string
  readonly public: boolean
  /** Aspects of the viewer that receive a private post; at least one. */
  readonly aspectIds?: readonly number[]
  /** Pending photos of the viewer. */
  readonly photoGuids?: readonly string[]
  readonly poll?: { readonly question: string; readonly answers: readonly string[] }
  readonly location?: { readonly address: string; readonly lat: string; readonly lng: string }
}

/** Creates a status message with photos, poll, location, tags and mentions in one transaction. */
export async function publishPost(services: Services, viewer: Viewer, input: NewPost): Promise<Post> {
  validatePost(viewer, input)
  const location = input.location?.address.trim() === '' ? undefined : input.location
  const guid = newGuid()
  const matchedDocuments = await requireUnfiltered(services, viewer, (author) =>
    postDocument(
      { guid, author, isPublic: input.public },
      { text: input.text, poll: input.poll && [input.poll.question, ...input.poll.answers] },
    ),
  )

  return inRequestTransaction(services, async (transaction) => {
    const aspectIds = input.public ? [] : await requireOwnAspects(transaction, viewer, input.aspectIds ?? [])
    const photos = await lockPendingPhotos(transaction, viewer, input.photoGuids ?? [])
    const text = input.public
      ? input.text
      : await replaceNonRecipientMentions(services, transaction, { ...input, aspectIds })
    requireText(text)

    const post = await Post.query(transaction)
      .insert({
        guid,
        authorId: viewer.personId,
        type: 'StatusMessage',
        public: input.public,
        text,
        createdAt: services.now(),
        interactedAt: services.now(),
        traceId: findTrace(transaction),
      })
      .returning('*')
    await Photo.attachToPost(transaction, photos, post)
    if (location !== undefined) await Location.query(transaction).insert({ postId: post.id, ...location })
    if (input.poll !== undefined) await addPoll(transaction, post, input.poll)
    await Tag.attach(
      transaction,
      { postId: post.id, createdAt: post.createdAt, isPublic: post.public },
      readTagNames(text),
    )
    const mentionedAddresses = readMentionedAddresses(text)
    await Mention.attach(transaction, { postId: post.id }, mentionedAddresses)
    if (!input.public) await Post.shareWith(transaction, post.id, aspectIds)
    await addActivityEntries(transaction, post.id, [viewer.personId])
    const causes = mentionedAddresses.length === 0 ? {} : { posts: [post.id] }
    const notifications = await notifyAbout(transaction, causes, post.createdAt)
    await enqueuePublication(services, transaction, {
      senderId: viewer.personId,
      record: { record: 'post', guid: post.guid },
      rows: { notifications, posts: [post.id] },
    })
    await applyFilterEffects(services, transaction, matchedDocuments)
    return post
  })
}

function validatePost(viewer: Viewer, { text, poll, location, ...input }: NewPost): void {
  if (!input.public && !viewer.scopes.has('private:modify')) {
    throw new Refusal('insufficient_scope', 'A private post needs the scope private:modify.')
  }
  const photos = input.photoGuids ?? []
  if (photos.length > TEXT_LIMITS.photosOfPost)
    throw new Refusal('photos_invalid', `A post may have at most ${TEXT_LIMITS.photosOfPost} photos.`)
  if (text.trim() === '' && photos.length === 0)
    throw new Refusal('text_required', 'A post needs some text or a photo.')
  requireText(text)

  if (poll !== undefined) {
    const { question, answers } = poll
    const isComplete = answers.length >= 2 && answers.length <= TEXT_LIMITS.pollAnswers
    if (!isComplete || ![question, ...answers].every(isName)) {
      throw new Refusal(
        'poll_invalid',
        `A poll needs a question and 2 to ${TEXT_LIMITS.pollAnswers} answers, each of 1 to ${TEXT_LIMITS.labelCharacters} characters.`,
      )
    }
  }
  if (location !== undefined && location.address.trim() !== '') {
    const { address, lat, lng } = location
    if (!isName(address) || !isCoordinate(lat, 90) || !isCoordinate(lng, 180)) {
      throw new Refusal(
        'location_invalid',
        `A location needs an address of up to ${TEXT_LIMITS.labelCharacters} characters, and lat and lng as degrees.`,
      )
    }
  }
}

/** Checked again after mentions were replaced by links, which are longer. */
function requireText(text: string): void {
  const fault = findTextFault(text)
  if (fault !== undefined) throw new Refusal('text_invalid', `The text ${fault}.`)
}

/** Accepts decimal degrees with an optional exponent. Other pods parse coordinates as numbers. */
function isCoordinate(text: string, maxDegrees: number): boolean {
  return /^[+-]?\d{1,3}(\.\d{1,30})?(e[+-]?\d{1,3})?$/i.test(text) && Math.abs(Number(text)) <= maxDegrees
}

function isName(text: string): boolean {
  return text.trim() !== '' && findTextFault(text, TEXT_LIMITS.labelCharacters) === undefined
}

/** Returns the chosen aspects of the viewer. Ids of other users' aspects are ignored. */
async function requireOwnAspects(
  transaction: Knex.Transaction,
  viewer: Viewer,
  requestedIds: readonly number[],
): Promise<readonly number[]> {
  const aspectIds = await ownAspectIds(transaction, viewer, requestedIds)
  if (aspectIds.length === 0)
    throw new Refusal('aspects_required', 'A private post needs at least one id of your own aspects in aspects.')
  return aspectIds
}

/** Locks pending photos of the viewer and returns them in the given order. */
async function lockPendingPhotos(
  transaction: Knex.Transaction,
  viewer: Viewer,
  guids: readonly string[],
): Promise<readonly Photo[]> {
  if (guids.length === 0) return []
  const pendingPhotos = await Photo.query(transaction)
    .where({ authorId: viewer.personId, pending: true })
    .whereIn('guid', [...guids])
    .orderBy('id')
    .forUpdate()
  const photos = guids.map((guid) => pendingPhotos.find((photo) => photo.guid === guid))
  const lockedPhotos = photos.filter((photo) => photo !== undefined)
  if (lockedPhotos.length < guids.length || new Set(lockedPhotos).size < lockedPhotos.length) {
    throw new Refusal('photos_invalid', 'Each photo must be one of your own that is not part of a post yet.')
  }
  return lockedPhotos
}

async function addPoll(
  transaction: Knex.Transaction,
  post: Post,
  { question, answers }: NonNullable<NewPost['poll']>,
): Promise<void> {
  await Poll.query(transaction).insertGraph({
    guid: newGuid(),
    postId: post.id,
    question,
    answers: answers.map((answer, position) => ({ guid: newGuid(), position, answer })),
  })
}
