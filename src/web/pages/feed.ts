import type { Person, Profile } from '../../persistence/models/person.js'
import type { PublicPost } from '../../persistence/posts/public-posts.js'
import { cleanText } from '../../protocol/xml/xml.js'
import { presentName } from '../presenters/people.js'
import { isNsfw, postTitle } from '../presenters/posts.js'
import { buildSummary } from '../text/plain-text.js'
import type { Names } from '../text/write-html.js'
import { escapeHtml } from './html.js'
import type { PageContext } from './language/page-texts.js'
import { ownPath } from './people.js'
import { type CardContext, postContent } from './post-card.js'

export interface FeedData {
  readonly person: Person
  readonly profile: Profile
  readonly posts: readonly PublicPost[]
  readonly names: Names
}

/** The URL of a person's feed, as in diaspora*. */
export function feedUrl(podUrl: string, address: string): string {
  const [username = ''] = address.split('@')
  return `${podUrl}/public/${username}.atom`
}

/** The newest public posts of a local person as an Atom feed (RFC 4287). */
export function personFeed({ person, profile, posts, names }: FeedData, page: PageContext): string {
  const { t, url, podName } = page
  const personUrl = `${url}/people/${person.guid}`
  const picture = ownPath(profile.imageUrl, url)
  const updatedAt = posts[0]?.post.createdAt ?? person.createdAt
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="${xmlText(url)}/">`,
    `<id>${xmlText(personUrl)}</id>`,
    `<title>${xmlText(`${presentName(person)} · ${podName}`)}</title>`,
    ...(profile.publicDetails && profile.bio.trim() !== ''
      ? [`<subtitle>${xmlText(buildSummary(profile.bio))}</subtitle>`]
      : []),
    `<updated>${updatedAt.toISOString()}</updated>`,
    `<link rel="alternate" type="text/html" href="${xmlText(personUrl)}"/>`,
    `<link rel="self" type="application/atom+xml" href="${xmlText(feedUrl(url, person.address))}"/>`,
    ...(picture === undefined ? [] : [`<logo>${xmlText(url + picture)}</logo>`]),
    authorElement(person, personUrl),
    ...posts.map((publicPost) => entry(publicPost, { t, services: page, names, excerpt: true })),
    '</feed>',
    '',
  ].join('\n')
}

/** A reshare has the content of its root, and the author of the root as the author of its content. */
function entry(publicPost: PublicPost, context: CardContext): string {
  const { t, services } = context
  const { post, root } = publicPost
  const url = `${services.url}/posts/${post.guid}`
  const time = post.createdAt.toISOString()
  return [
    '<entry>',
    `<id>${xmlText(url)}</id>`,
    `<title>${xmlText(postTitle(t, publicPost))}</title>`,
    `<link rel="alternate" type="text/html" href="${xmlText(url)}"/>`,
    `<published>${time}</published>`,
    `<updated>${time}</updated>`,
    ...(root === undefined ? [] : [authorElement(root.author, `${services.url}/people/${root.author.guid}`)]),
    content(publicPost, context),
    '</entry>',
  ].join('\n')
}

/** Readers of feeds resolve the paths in it with `xml:base`. */
function content(publicPost: PublicPost, context: CardContext): string {
  if (isNsfw(publicPost)) return `<summary>${xmlText(context.t('post.nsfw_summary'))}</summary>`
  return `<content type="html">${xmlText(postContent(publicPost.root ?? publicPost, context))}</content>`
}

function authorElement(person: Person, url: string): string {
  return `<author><name>${xmlText(presentName(person))}</name><uri>${xmlText(url)}</uri></author>`
}

function xmlText(text: string): string {
  return escapeHtml(cleanText(text))
}
