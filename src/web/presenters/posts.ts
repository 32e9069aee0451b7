import type { Static } from 'typebox'
import { inEnglish } from '../../languages/locales.js'
import type { Translate } from '../../languages/translate.js'
import type { Person } from '../../persistence/models/person.js'
import type { Poll } from '../../persistence/models/poll.js'
import type { Location, Post as StoredPost } from '../../persistence/models/post.js'
import type { ListedPoll, ListedPost } from '../../persistence/posts/list-posts.js'
import type { PublicPost } from '../../persistence/posts/public-posts.js'
import type { Poll as PollSchema, Post as PostSchema, Root as RootSchema } from '../schemas/posts.js'
import { buildTitle, type NameOf } from '../text/plain-text.js'
import { HIDDEN } from './moderation.js'
import { presentName, presentPersonSummary } from './people.js'
import { type PresentablePhoto, presentPicture } from './photos.js'
import type { PodAddresses } from './picture-urls.js'

/** A post for a local user. A reshare has the content of its root. */
export function presentPost(post: ListedPost, addresses: PodAddresses): Static<typeof PostSchema> {
  const { root } = post
  const fields = presentListed(post, addresses)
  return root ? Object.assign(fields, { root: presentListed(root, addresses) }) : fields
}

/** `Object.assign` instead of spreading, which was the largest cost of a list of posts. */
function presentListed(post: ListedPost, addresses: PodAddresses): Static<typeof RootSchema> {
  const { author, root, viewerActions, providerDisplayName } = post
  const shownPost = root ?? post
  const fields: Static<typeof RootSchema> = Object.assign(
    presentOwnMembers(post, author, addresses),
    presentContent(shownPost, addresses),
    {
      title: titleOrPhrase(inEnglish, shownPost, shownPost.author),
      nsfw: isMarkedNsfw(shownPost, shownPost.author.nsfw),
      own_interaction_state: {
        liked: viewerActions.liked,
        // `reshated` is the misspelling of the specification; existing clients read `reshared`.
        reshated: viewerActions.reshared,
        reshared: viewerActions.reshared,
        subscribed: viewerActions.subscribed,
        reported: viewerActions.reported,
      },
    },
  )
  if (providerDisplayName !== null) fields.provider_display_name = providerDisplayName
  if (shownPost.poll) fields.poll = presentPollWithVotes(shownPost.poll)
  if (post.isHidden) fields.moderation = HIDDEN
  return fields
}

/** A post in the JSON stream that other pods read after they have discovered a person. */
export function presentStreamItem({ post, author }: PublicPost) {
  return {
    guid: post.guid,
    public: post.public,
    post_type: post.type,
    created_at: post.createdAt.toISOString(),
    author: { guid: author.guid, diaspora_id: author.address, name: presentName(author) },
  }
}

/** A public post as JSON for anonymous requests. */
export function presentPublicPost(publicPost: PublicPost, addresses: PodAddresses): object {
  const { post, author, root } = publicPost
  const shownPost = (root ?? publicPost).post
  return {
    ...presentOwnMembers(post, author, addresses),
    ...presentContent(shownPost, addresses),
    title: postTitle(inEnglish, publicPost),
    nsfw: isNsfw(publicPost),
    ...(shownPost.poll && { poll: presentPoll(shownPost.poll) }),
    ...(root && { root: presentPublicPost(root, addresses) }),
  }
}

/** The title of a post: the beginning of its text, or else a phrase with its author. */
export function postTitle(t: Translate, publicPost: PublicPost): string {
  const { post, author } = publicPost.root ?? publicPost
  return titleOrPhrase(t, post, author)
}

export function isNsfw(publicPost: PublicPost): boolean {
  const { post, author } = publicPost.root ?? publicPost
  return isMarkedNsfw(post, author.profile?.nsfw === true)
}

type Named = Pick<Person, 'name' | 'address'>

interface Titled {
  readonly text: string
  readonly mentionedPeople?: readonly Named[]
}

function titleOrPhrase(t: Translate, { text, mentionedPeople = [] }: Titled, author: Named): string {
  const nameOf: NameOf = ({ name, address }) => {
    const person = mentionedPeople.find((mentioned) => mentioned.address === address)
    return name ?? (person ? presentName(person) : address)
  }
  return buildTitle(text, nameOf) ?? t('post.from', { name: presentName(author) })
}

/** The post is tagged #nsfw, or its author's profile is marked. A reshare without root has no content to mark. */
function isMarkedNsfw({ type, text }: Pick<StoredPost, 'type' | 'text'>, isAuthorNsfw: boolean): boolean {
  return type === 'StatusMessage' && (isAuthorNsfw || /#nsfw/i.test(text))
}

/** The members that a reshare does not take from its root. */
function presentOwnMembers(
  post: Pick<StoredPost, 'guid' | 'createdAt' | 'public' | 'type' | 'commentsCount' | 'likesCount' | 'resharesCount'>,
  author: Parameters<typeof presentPersonSummary>[0],
  addresses: PodAddresses,
) {
  return {
    guid: post.guid,
    created_at: post.createdAt.toISOString(),
    public: post.public,
    post_type: post.type,
    author: presentPersonSummary(author, addresses),
    interaction_counters: { comments: post.commentsCount, likes: post.likesCount, reshares: post.resharesCount },
  }
}

interface Content {
  readonly text: string
  readonly mentionedPeople?: readonly Parameters<typeof presentPersonSummary>[0][]
  readonly photos?: readonly PresentablePhoto[]
  readonly location?: Pick<Location, 'address' | 'lat' | 'lng'> | null
}

function presentContent(
  { text, mentionedPeople = [], photos = [], location = null }: Content,
  addresses: PodAddresses,
) {
  const content = {
    body: text,
    mentioned_people: mentionedPeople.map((person) => presentPersonSummary(person, addresses)),
    photos: photos.flatMap((photo) => presentPicture(photo, addresses) ?? []),
  }
  return Object.assign(content, presentLocation(location))
}

/** Remote pods may send any text as a coordinate. A location whose coordinates are not numbers is left out. */
function presentLocation(location: Content['location']) {
  if (!location) return {}
  const [lat, lng] = [Number(location.lat), Number(location.lng)]
  return Number.isFinite(lat) && Number.isFinite(lng) ? { location: { address: location.address, lat, lng } } : {}
}

function presentPollWithVotes(poll: ListedPoll): Static<typeof PollSchema> {
  const { guid, question, participation_count } = presentPoll(poll)
  return {
    guid,
    question,
    participation_count,
    already_participated: poll.answers.some(({ isViewersVote }) => isViewersVote),
    poll_answers: poll.answers.map(({ id, answer, voteCount, isViewersVote }) => ({
      id,
      answer,
      vote_count: voteCount,
      own_answer: isViewersVote,
    })),
  }
}

function presentPoll({
  guid,
  question,
  answers = [],
}: Pick<Poll, 'guid' | 'question'> & { answers?: readonly PollLine[] }) {
  return {
    guid,
    question,
    participation_count: answers.reduce((sum, { voteCount }) => sum + voteCount, 0),
    poll_answers: answers.map(({ id, answer, voteCount }) => ({ id, answer, vote_count: voteCount })),
  }
}

type PollLine = Pick<NonNullable<Poll['answers']>[number], 'id' | 'answer' | 'voteCount'>
