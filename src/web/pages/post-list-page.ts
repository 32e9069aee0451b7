import type { ListPage, PagePosition, PublicPost } from '../../domain/posts/public-posts.js'
import type { Post } from '../../persistence/models/post.js'
import type { Names } from '../text/write-html.js'
import { pageHead } from './head.js'
import { escapeHtml, type PagePod, page } from './html.js'
import { pageLinks, positionQuery } from './list-pages.js'
import { postCard } from './post-card.js'

export interface PostListFacts {
  /** Undefined: all public posts. */
  readonly tag: string | undefined
  readonly path: string
  readonly posts: readonly PublicPost[]
  readonly list: ListPage<Pick<Post, 'id' | 'createdAt'>>
  readonly position: PagePosition | undefined
  readonly names: Names
}

/** A page of public posts of many people: those with a tag, or all. Search engines find the posts on the pages of their authors. */
export function postListPage({ tag, path, posts, list, position, names }: PostListFacts, pod: PagePod): string {
  const { url, podName } = pod
  const title = tag === undefined ? 'Public posts' : `#${tag}`
  const introduction =
    tag === undefined ? 'Public posts of people on this pod and on other pods.' : 'Public posts with this tag.'
  return page({
    title: `${title} · ${podName}`,
    site: podName,
    layout: 'column',
    head: pageHead({
      url: `${url}${path}${positionQuery(position)}`,
      title,
      description: introduction,
      site: podName,
      indexed: false,
      type: 'website',
    }),
    content: [
      `<section class="card"><h1 dir="auto">${escapeHtml(title)}</h1>\n<p class="soft">${introduction}</p></section>`,
      ...posts.map((post) => postCard(post, { pod, names, excerpt: true })),
      ...(posts.length === 0 ? [`<p class="soft">${noPosts(tag, position)}</p>`] : []),
      pageLinks({ path, list, position, first: 'newest', noun: 'posts' }),
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

function noPosts(tag: string | undefined, position: PagePosition | undefined): string {
  if (position !== undefined) return 'There are no public posts on this page.'
  return tag === undefined ? 'No public posts yet.' : 'No public post has this tag yet.'
}
