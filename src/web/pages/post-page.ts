import { hasWebUrl } from '../../domain/photos/photos.js'
import type { ListPage, PagePosition, PublicPost } from '../../domain/posts/public-posts.js'
import type { Comment } from '../../persistence/models/comment.js'
import { isNsfw, postTitle } from '../presenters/posts.js'
import { summaryOf } from '../text/plain-text.js'
import { type Names, writeExcerpt } from '../text/write-html.js'
import { type PreviewImage, pageHead } from './head.js'
import { escapeHtml, type PagePod, page } from './html.js'
import { pageLinks } from './list-pages.js'
import { face, personLink } from './people.js'
import { countOf, largePicturePath, postCard } from './post-card.js'
import { timeHtml } from './time.js'

export interface PostPageFacts {
  readonly shared: PublicPost
  readonly comments: ListPage<Comment>
  readonly position: PagePosition | undefined
  readonly names: Names
}

/** A public post with a page of its comments. */
export function postPage({ shared, comments, position, names }: PostPageFacts, pod: PagePod): string {
  const { url, podName } = pod
  const { post, author, root } = shared
  const title = postTitle(shared)
  const hidden = isNsfw(shared)
  return page({
    title: `${title} · ${podName}`,
    site: podName,
    layout: 'column',
    head: pageHead({
      url: `${url}/posts/${post.guid}`,
      title,
      description: hidden ? '' : summaryOf((root ?? shared).post.text),
      site: podName,
      indexed: !hidden && author.profile?.searchable !== false,
      type: 'article',
      image: hidden ? undefined : firstPicture(shared, url),
      publishedAt: post.createdAt,
      oembedUrl: `${url}/oembed?url=${encodeURIComponent(`${url}/posts/${post.guid}`)}`,
    }),
    content: [
      // The card shows the author first; for screen readers the page begins with its title.
      `<h1 class="for-readers" dir="auto">${escapeHtml(title)}</h1>`,
      postCard(shared, { pod, names }),
      commentSection(shared, comments, position, { pod, names }),
      `<p class="soft small">To reply, search for <code>${escapeHtml(author.address)}</code> on your own pod.</p>`,
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

/** The first photo of a post, if this pod serves it. */
function firstPicture(shared: PublicPost, podUrl: string): PreviewImage | undefined {
  const [photo] = (shared.root ?? shared).post.photos ?? []
  if (photo === undefined || !hasWebUrl(photo)) return undefined
  const path = largePicturePath(photo, podUrl)
  if (path === undefined) return undefined
  return { url: `${podUrl}${path}`, width: photo.width, height: photo.height, alt: photo.text }
}

interface Context {
  readonly pod: PagePod
  readonly names: Names
}

function commentSection(
  { post }: PublicPost,
  comments: ListPage<Comment>,
  position: PagePosition | undefined,
  context: Context,
): string {
  if (comments.items.length === 0 && position === undefined) return ''
  const path = `/posts/${post.guid}`
  const links = pageLinks({ path, list: comments, position, first: 'oldest', noun: 'comments' })
  return `<section class="card" id="comments">
<h2>${countOf(post.commentsCount, 'comment')}</h2>
${comments.items.length === 0 ? '<p class="soft">There are no comments on this page.</p>' : ''}${comments.items
  .map((comment) => commentHtml(comment, context))
  .join('\n')}
${links}</section>`
}

/** Comments stand below the heading that counts them. */
const BELOW_HEADING = 3

function commentHtml({ guid, author, text, createdAt }: Comment, { pod, names }: Context): string {
  if (author === undefined) return ''
  return `<article class="comment" id="${escapeHtml(guid)}">
<header class="by">${face(author, pod)}<div>
<p>${personLink(author)}</p>
<p class="small"><a class="soft" href="#${escapeHtml(guid)}">${timeHtml(createdAt)}</a></p>
</div></header>
<div class="text" dir="auto">
${writeExcerpt(text, names, BELOW_HEADING).html}
</div>
</article>`
}
