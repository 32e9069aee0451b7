import { hasWebUrl } from '../../domain/photos/photos.js'
import type { Comment } from '../../persistence/models/comment.js'
import type { PagePosition, PublicPost } from '../../persistence/posts/public-posts.js'
import type { ListPage } from '../../persistence/sql/id-page.js'
import { isNsfw, postTitle } from '../presenters/posts.js'
import { buildSummary } from '../text/plain-text.js'
import { type Names, writeExcerpt } from '../text/write-html.js'
import { type PreviewImage, pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import { messageHtml } from './language/message-markup.js'
import type { PageContext, PageTexts } from './language/page-texts.js'
import { pageLinks } from './list-pages.js'
import { avatarHtml, personLink } from './people.js'
import { largePicturePath, postCard } from './post-card.js'
import { timeHtml } from './time.js'

export interface PostPageData {
  readonly shared: PublicPost
  readonly comments: ListPage<Comment>
  readonly position: PagePosition | undefined
  readonly names: Names
}

/** A public post with a page of its comments. */
export function postPage({ shared, comments, position, names }: PostPageData, pod: PageContext): string {
  const { t, url, podName } = pod
  const { post, author, root } = shared
  const title = postTitle(t, shared)
  const isHidden = isNsfw(shared)
  return page({
    t,
    title: `${title} · ${podName}`,
    site: podName,
    layout: 'column',
    head: pageHead({
      url: `${url}/posts/${post.guid}`,
      title,
      description: isHidden ? '' : buildSummary((root ?? shared).post.text),
      site: podName,
      isIndexed: !isHidden && author.profile?.searchable !== false,
      type: 'article',
      image: isHidden ? undefined : firstPicture(shared, url),
      publishedAt: post.createdAt,
      oembedUrl: `${url}/oembed?url=${encodeURIComponent(`${url}/posts/${post.guid}`)}`,
    }),
    content: [
      // The card shows the author first; for screen readers the page begins with its title.
      `<h1 class="for-readers" dir="auto">${escapeHtml(title)}</h1>`,
      postCard(shared, { t, services: pod, names }),
      commentSection(shared, comments, position, { t, pod, names }),
      `<p class="soft small">${messageHtml(t, 'page.reply', { address: author.address })}</p>`,
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

/** The first photo of a post, if this pod serves it. */
function firstPicture(publicPost: PublicPost, podUrl: string): PreviewImage | undefined {
  const [photo] = (publicPost.root ?? publicPost).post.photos ?? []
  if (photo === undefined || !hasWebUrl(photo)) return undefined
  const path = largePicturePath(photo, podUrl)
  if (path === undefined) return undefined
  return { url: `${podUrl}${path}`, width: photo.width, height: photo.height, alt: photo.text }
}

interface Context {
  readonly t: PageTexts
  readonly pod: PageContext
  readonly names: Names
}

function commentSection(
  { post }: PublicPost,
  comments: ListPage<Comment>,
  position: PagePosition | undefined,
  context: Context,
): string {
  if (comments.items.length === 0 && position === undefined) return ''
  const { t } = context
  const path = `/posts/${post.guid}`
  const links = pageLinks(t, { path, list: comments, position, first: 'oldest', noun: 'comments' })
  return `<section class="card" id="comments">
<h2>${escapeHtml(t('post.comments', { count: post.commentsCount }))}</h2>
${comments.items.length === 0 ? `<p class="soft">${escapeHtml(t('page.no_comments_here'))}</p>` : ''}${comments.items
  .map((comment) => commentHtml(comment, context))
  .join('\n')}
${links}</section>`
}

/** Comments are below the heading that counts them. */
const BELOW_HEADING = 3

function commentHtml({ guid, author, text, createdAt }: Comment, { t, pod, names }: Context): string {
  if (author === undefined) return ''
  return `<article class="comment" id="${escapeHtml(guid)}">
<header class="by">${avatarHtml(author, pod)}<div>
<p>${personLink(author)}</p>
<p class="small"><a class="soft" href="#${escapeHtml(guid)}">${timeHtml(t, createdAt).text}</a></p>
</div></header>
<div class="text" dir="auto">
${writeExcerpt(text, names, BELOW_HEADING).html}
</div>
</article>`
}
