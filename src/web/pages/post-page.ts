import type { PublicPost } from '../../domain/posts/public-posts.js'
import type { Comment } from '../../persistence/models/comment.js'
import { isNsfw, postTitle } from '../presenters/posts.js'
import { summaryOf } from '../text/plain-text.js'
import { type Names, writeExcerpt } from '../text/write-html.js'
import { pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import { face, personLink } from './people.js'
import { countOf, postCard } from './post-card.js'
import { timeHtml } from './time.js'

export interface PostPageFacts {
  readonly shared: PublicPost
  readonly comments: readonly Comment[]
  readonly names: Names
}

/** A public post with its comments, for everybody. */
export function postPage(
  { shared, comments, names }: PostPageFacts,
  { url, podName }: { readonly url: string; readonly podName: string },
): string {
  const { post, author, root } = shared
  const title = postTitle(shared)
  const hidden = isNsfw(shared)
  return page({
    title: `${title} · ${podName}`,
    below: podName,
    head: pageHead({
      url: `${url}/posts/${post.guid}`,
      title,
      description: hidden ? '' : summaryOf((root ?? shared).post.text),
      site: podName,
      indexed: !hidden && author.profile?.searchable !== false,
    }),
    content: [
      // What is seen first is the author; screen readers begin with what the page is about.
      `<h1 class="for-readers">${escapeHtml(title)}</h1>`,
      postCard(shared, { podUrl: url, names }),
      comments.length === 0 ? '' : commentSection(post.commentsCount, comments, { podUrl: url, names }),
      `<p class="soft small">To answer, search for <code>${escapeHtml(author.address)}</code> on the pod where you live.</p>`,
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

interface Context {
  readonly podUrl: string
  readonly names: Names
}

function commentSection(all: number, comments: readonly Comment[], context: Context): string {
  const rest = all - comments.length
  return `<section class="card">
<h2>${countOf(all, 'comment')}</h2>
${comments.map((comment) => commentHtml(comment, context)).join('\n')}${rest > 0 ? `\n<p class="soft">And ${rest} more.</p>` : ''}
</section>`
}

/** Comments stand below the heading that counts them. */
const BELOW_HEADING = 3

function commentHtml({ guid, author, text, createdAt }: Comment, { podUrl, names }: Context): string {
  if (author === undefined) return ''
  return `<article class="inner" id="${escapeHtml(guid)}">
<header class="by">${face(author, podUrl)}<div>
<p>${personLink(author)}</p>
<p class="soft small">${timeHtml(createdAt)}</p>
</div></header>
<div class="text" dir="auto">
${writeExcerpt(text, names, BELOW_HEADING).html}
</div>
</article>`
}
