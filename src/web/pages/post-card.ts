import { isPicture, PHOTO_SIZES, photoFolder } from '../../domain/photos/photos.js'
import type { PublicPost } from '../../domain/posts/public-posts.js'
import type { Photo } from '../../persistence/models/photo.js'
import type { Poll } from '../../persistence/models/poll.js'
import type { Post } from '../../persistence/models/post.js'
import { isNsfw } from '../presenters/posts.js'
import { type Names, writeExcerpt, writeHtml } from '../text/write-html.js'
import { escapeHtml } from './html.js'
import { face, ownPath, personLink } from './people.js'
import { timeHtml } from './time.js'

export interface CardContext {
  readonly podUrl: string
  readonly names: Names
  /** One of several: a long text is cut, with a link to the rest. */
  readonly excerpt?: boolean
}

/** A post as it stands on a page: who, when, what, and what came of it. */
export function postCard(shared: PublicPost, context: CardContext): string {
  return `<article class="card">
${byLine(shared, context)}
${shared.post.type === 'Reshare' ? original(shared.root, context) : content(shared, context)}
${counters(shared.post)}</article>`
}

function byLine({ post, author }: PublicPost, { podUrl }: CardContext): string {
  return `<header class="by">${face(author, podUrl)}<div>
<p>${personLink(author)}</p>
<p class="soft small"><a class="soft" href="/posts/${escapeHtml(post.guid)}">${timeHtml(post.createdAt)}</a></p>
</div></header>`
}

function original(root: PublicPost | undefined, context: CardContext): string {
  if (root === undefined) return '<p class="soft">The post that was shared here is gone.</p>'
  return `<div class="inner">
${byLine(root, context)}
${content(root, context)}
</div>`
}

/** Some people look at pages where others look over their shoulders. */
function content(shared: PublicPost, context: CardContext): string {
  const parts = contentParts(shared.post, context)
  if (!isNsfw(shared)) return parts
  return `<details class="inner"><summary>Marked as not safe for work. Show it</summary>\n${parts}\n</details>`
}

function contentParts(post: Post, context: CardContext): string {
  const { photos = [], poll, location } = post
  return [
    post.text.trim() === '' ? '' : textHtml(post, context),
    photosHtml(photos, context.podUrl),
    poll ? pollHtml(poll) : '',
    location ? `<p class="soft small">📍 ${escapeHtml(location.address)}</p>` : '',
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function textHtml({ guid, text }: Post, { names, excerpt = false }: CardContext): string {
  const { html, complete } = excerpt ? writeExcerpt(text, names) : { html: writeHtml(text, names), complete: true }
  const more = complete ? '' : `\n<p><a href="/posts/${escapeHtml(guid)}">Read on</a></p>`
  return `<div class="text" dir="auto">\n${html}${more}\n</div>`
}

function photosHtml(all: readonly Photo[], podUrl: string): string {
  const pictures = all.filter(isPicture)
  if (pictures.length === 0) return ''
  return `<div class="photos">${pictures.map((photo) => photoHtml(photo, podUrl)).join('')}</div>`
}

/** One that lies elsewhere is linked: loading it would tell that server who reads this page. */
function photoHtml(photo: Photo, podUrl: string): string {
  const folder = photoFolder(photo, podUrl)
  const name = encodeURIComponent(photo.name)
  const path = ownPath(`${folder}${PHOTO_SIZES.large}${name}`, podUrl)
  const description = photo.text ?? ''
  if (path === undefined) {
    const label = description === '' ? 'Picture' : description
    return `<a href="${escapeHtml(folder + name)}" rel="nofollow ugc noopener">🖼 ${escapeHtml(label)}</a>`
  }
  const size = photo.width && photo.height ? ` width="${photo.width}" height="${photo.height}"` : ''
  return `<a href="${escapeHtml(ownPath(folder + name, podUrl) ?? path)}"><img src="${escapeHtml(path)}" alt="${escapeHtml(description)}"${size} loading="lazy"></a>`
}

function pollHtml({ question, answers = [] }: Poll): string {
  const votes = answers.reduce((sum, { voteCount }) => sum + voteCount, 0)
  const rows = answers.map(
    ({
      answer,
      voteCount,
    }) => `<li><div><span dir="auto">${escapeHtml(answer)}</span><span class="soft">${voteCount}</span></div>
<meter min="0" max="${Math.max(votes, 1)}" value="${voteCount}">${voteCount} of ${votes}</meter></li>`,
  )
  return `<div class="inner"><p dir="auto"><b>${escapeHtml(question)}</b></p>
<ul class="poll">${rows.join('')}</ul>
<p class="soft small">${countOf(votes, 'vote')}</p></div>`
}

function counters({ commentsCount, likesCount, resharesCount }: Post): string {
  const counts = [
    [commentsCount, 'comment'],
    [likesCount, 'like'],
    [resharesCount, 'reshare'],
  ] as const
  const shown = counts.filter(([count]) => count > 0).map(([count, noun]) => `<span>${countOf(count, noun)}</span>`)
  return shown.length === 0 ? '' : `<p class="foot soft small">${shown.join('')}</p>\n`
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
