import type { Post } from '../../persistence/models/post.js'
import type { PagePosition, PublicPost } from '../../persistence/posts/public-posts.js'
import type { ListPage } from '../../persistence/sql/id-page.js'
import type { Names } from '../text/write-html.js'
import { pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import type { PageContext } from './language/page-texts.js'
import { pageLinks, positionQuery } from './list-pages.js'
import { postCard } from './post-card.js'

export interface PostListPageData {
  /** Undefined: all public posts. */
  readonly tag: string | undefined
  readonly path: string
  readonly posts: readonly PublicPost[]
  readonly list: ListPage<Pick<Post, 'id' | 'createdAt'>>
  readonly position: PagePosition | undefined
  readonly names: Names
}

/** A page of public posts of many people: those with a tag, or all. Search engines find the posts on the pages of their authors. */
export function postListPage({ tag, path, posts, list, position, names }: PostListPageData, pod: PageContext): string {
  const { t, url, podName } = pod
  const title = tag === undefined ? t('page.public_posts') : `#${tag}`
  const introduction = tag === undefined ? t('page.public_stream_about') : t('page.tag_about')
  return page({
    t,
    title: `${title} · ${podName}`,
    site: podName,
    layout: 'column',
    head: pageHead({
      url: `${url}${path}${positionQuery(position)}`,
      title,
      description: introduction,
      site: podName,
      isIndexed: false,
      type: 'website',
    }),
    content: [
      `<section class="card"><h1 dir="auto">${escapeHtml(title)}</h1>\n<p class="soft">${escapeHtml(introduction)}</p></section>`,
      ...posts.map((post) => postCard(post, { t, services: pod, names, excerpt: true })),
      ...(posts.length === 0 ? [`<p class="soft">${escapeHtml(noPosts(t, tag, position))}</p>`] : []),
      pageLinks(t, { path, list, position, first: 'newest', noun: 'posts' }),
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

function noPosts(t: PageContext['t'], tag: string | undefined, position: PagePosition | undefined): string {
  if (position !== undefined) return t('page.no_posts_here')
  return tag === undefined ? t('page.no_posts') : t('page.no_tag_posts')
}
