import { hasWebUrl, PHOTO_SIZE_PREFIXES, photoBaseUrl } from '../../domain/photos/photos.js'
import type { Translate } from '../../languages/translate.js'
import type { Photo } from '../../persistence/models/photo.js'
import type { Poll } from '../../persistence/models/poll.js'
import type { Post } from '../../persistence/models/post.js'
import type { PublicPost } from '../../persistence/posts/public-posts.js'
import { presentName } from '../presenters/people.js'
import type { PodAddresses } from '../presenters/picture-urls.js'
import { isNsfw } from '../presenters/posts.js'
import { type Names, writeExcerpt, writeHtml } from '../text/write-html.js'
import { escapeHtml } from './html.js'
import { messageHtml } from './language/message-markup.js'
import { avatarHtml, ownPath, ownPictureSource, personLink } from './people.js'
import { timeHtml } from './time.js'

export interface CardContext {
  readonly t: Translate
  readonly services: PodAddresses
  readonly names: Names
  /** Shortens a long text and links to the rest. */
  readonly excerpt?: boolean
  /** The highest level of the headings in the text. */
  readonly topLevel?: number
}

/** A post with its author, time, content and counters. */
export function postCard(publicPost: PublicPost, context: CardContext): string {
  return `<article class="card">
${byLine(publicPost, context)}
${publicPost.post.type === 'Reshare' ? original(publicPost.root, context) : content(publicPost, context)}
${counters(context.t, publicPost.post)}</article>`
}

function byLine({ post, author }: PublicPost, { t, services }: CardContext): string {
  return `<header class="by">${avatarHtml(author, services)}<div>
<p>${personLink(author)}</p>
<p class="small"><a class="soft" href="/posts/${escapeHtml(post.guid)}">${timeHtml(t, post.createdAt).text}</a></p>
</div></header>`
}

function original(root: PublicPost | undefined, context: CardContext): string {
  if (root === undefined) return `<p class="soft">${escapeHtml(context.t('post.deleted_root'))}</p>`
  return `<div class="inner">
${byLine(root, context)}
${content(root, context)}
</div>`
}

/** Posts marked as not safe for work are shown on request only. */
function content(publicPost: PublicPost, context: CardContext): string {
  const parts = postContent(publicPost, context)
  if (!isNsfw(publicPost)) return parts
  return `<details class="inner"><summary>${escapeHtml(context.t('post.nsfw'))}</summary>\n${parts}\n</details>`
}

/** Text, photos, poll and place of a post. */
export function postContent({ post, author }: PublicPost, context: CardContext): string {
  const { photos = [], poll, location } = post
  const parts = [
    post.text.trim() === '' ? '' : textHtml(post, context),
    photosHtml(photos, presentName(author), context),
    poll ? pollHtml(context.t, poll) : '',
    location
      ? `<p class="soft small"><span aria-hidden="true">📍</span> <bdi>${escapeHtml(location.address)}</bdi></p>`
      : '',
  ].filter((part) => part !== '')
  return parts.length === 0 ? `<p class="soft">${escapeHtml(context.t('post.no_text'))}</p>` : parts.join('\n')
}

function textHtml({ guid, text }: Post, { t, names, excerpt = false, topLevel }: CardContext): string {
  const { html, complete } = excerpt
    ? writeExcerpt(text, names, topLevel)
    : { html: writeHtml(text, names, topLevel), complete: true }
  const more = complete ? '' : `\n<p><a href="/posts/${escapeHtml(guid)}">${messageHtml(t, 'post.read_more')}</a></p>`
  return `<div class="text" dir="auto">\n${html}${more}\n</div>`
}

function photosHtml(all: readonly Photo[], name: string, { t, services }: CardContext): string {
  const pictures = all.filter(hasWebUrl)
  if (pictures.length === 0) return ''
  const html = pictures.map((photo, index) => {
    const count = pictures.length
    const description =
      count === 1 ? t('post.photo_by', { name }) : t('post.photo_number_by', { number: index + 1, count, name })
    return photoHtml(photo, description, services)
  })
  return `<div class="photos">${html.join('')}</div>`
}

/** The path of the large size of a photo. Undefined: another server has it. */
export function largePicturePath(photo: Photo, podUrl: string): string | undefined {
  return ownPath(largePictureUrl(photo, podUrl), podUrl)
}

function largePictureUrl(photo: Photo, podUrl: string): string {
  return `${photoBaseUrl(photo, podUrl)}${PHOTO_SIZE_PREFIXES.large}${encodeURIComponent(photo.name)}`
}

/** A photo on another server is linked: loading it would tell that server who reads this page. */
function photoHtml(photo: Photo, fallback: string, services: PodAddresses): string {
  const source = ownPictureSource(largePictureUrl(photo, services.url), services)
  const original = photoBaseUrl(photo, services.url) + encodeURIComponent(photo.name)
  const description = photo.text?.trim() || fallback
  if (source === undefined) {
    return `<a href="${escapeHtml(original)}" rel="nofollow ugc noopener"><span aria-hidden="true">🖼</span> <bdi>${escapeHtml(description)}</bdi></a>`
  }
  const size = photo.width && photo.height ? ` width="${photo.width}" height="${photo.height}"` : ''
  return `<a href="${escapeHtml(ownPictureSource(original, services) ?? source)}"><img src="${escapeHtml(source)}" alt="${escapeHtml(description)}"${size} loading="lazy"></a>`
}

function pollHtml(t: Translate, { question, answers = [] }: Poll): string {
  const votes = answers.reduce((sum, { voteCount }) => sum + voteCount, 0)
  const rows = answers.map(
    ({
      answer,
      voteCount,
    }) => `<li><div><bdi>${escapeHtml(answer)}</bdi><span class="soft">${escapeHtml(t('post.votes', { count: voteCount }))}</span></div>
<meter min="0" max="${Math.max(votes, 1)}" value="${voteCount}" aria-hidden="true"></meter></li>`,
  )
  return `<div class="inner"><p dir="auto"><b>${escapeHtml(question)}</b></p>
<ul class="poll">${rows.join('')}</ul>
<p class="soft small">${escapeHtml(t('post.votes_in_total', { count: votes }))}</p></div>`
}

function counters(t: Translate, { commentsCount, likesCount, resharesCount }: Post): string {
  const counts = [
    ['post.comments', commentsCount],
    ['post.likes', likesCount],
    ['post.reshares', resharesCount],
  ] as const
  const shownCounts = counts
    .filter(([, count]) => count > 0)
    .map(([id, count]) => `<span>${escapeHtml(t(id, { count }))}</span>`)
  return shownCounts.length === 0 ? '' : `<p class="foot soft small">${shownCounts.join('')}</p>\n`
}
