import { isPicture, PHOTO_SIZES, photoFolder } from '../../domain/photos.js'
import type { PublicPost } from '../../domain/public-posts.js'
import type { Photo } from '../../persistence/models/photo.js'
import type { Poll } from '../../persistence/models/poll.js'
import { titleOf } from '../text/plain-text.js'
import { presentName, presentPersonSummary } from './people.js'

/** What a pod that has just met a person reads to find their posts. */
export function presentStreamItem({ post, author }: PublicPost) {
  return {
    guid: post.guid,
    public: post.public,
    post_type: post.type,
    created_at: post.createdAt.toISOString(),
    author: { guid: author.guid, diaspora_id: author.address, name: presentName(author) },
  }
}

/** A public post for everybody who asks for JSON; a reshare shows what its root shows. */
export function presentPublicPost(shared: PublicPost, podUrl: string): object {
  const { post, author, root } = shared
  const { text, mentionedPeople = [], photos = [], location, poll } = (root ?? shared).post
  return {
    guid: post.guid,
    created_at: post.createdAt.toISOString(),
    public: post.public,
    post_type: post.type,
    title: postTitle(shared),
    body: text,
    nsfw: isNsfw(shared),
    author: presentPersonSummary(author, podUrl),
    interaction_counters: {
      comments: post.commentsCount,
      likes: post.likesCount,
      reshares: post.resharesCount,
    },
    mentioned_people: mentionedPeople.map((person) => presentPersonSummary(person, podUrl)),
    photos: photos.filter(isPicture).map((photo) => presentPhoto(photo, podUrl)),
    ...(location && {
      location: { address: location.address, lat: Number(location.lat), lng: Number(location.lng) },
    }),
    ...(poll && { poll: presentPoll(poll) }),
    ...(root && { root: presentPublicPost(root, podUrl) }),
  }
}

/** What a post is called: its beginning, or whose it is. */
export function postTitle(shared: PublicPost): string {
  const { post, author } = shared.root ?? shared
  return titleOf(post.text) ?? `A post by ${presentName(author)}`
}

/** The author says so about this post, or about all of theirs. */
export function isNsfw(shared: PublicPost): boolean {
  const { post, author } = shared.root ?? shared
  return /#nsfw/i.test(post.text) || author.profile?.nsfw === true
}

function presentPhoto(photo: Photo, podUrl: string) {
  const folder = photoFolder(photo, podUrl)
  const sizes = Object.entries(PHOTO_SIZES).map(([size, prefix]) => [size, `${folder}${prefix}${photo.name}`])
  return { dimensions: { height: photo.height, width: photo.width }, sizes: Object.fromEntries(sizes) }
}

function presentPoll({ guid, question, answers = [] }: Poll) {
  return {
    guid,
    question,
    participation_count: answers.reduce((sum, { voteCount }) => sum + voteCount, 0),
    poll_answers: answers.map(({ id, answer, voteCount }) => ({ id, answer, vote_count: voteCount })),
  }
}
