import { inEnglish } from '../../languages/locales.js'
import type { PublicPost } from '../../persistence/posts/public-posts.js'
import { escapeHtml } from '../pages/html.js'
import { buildSummary } from '../text/plain-text.js'
import { presentName } from './people.js'
import { isNsfw, postTitle } from './posts.js'

const WIDTH = 600
const CACHE_SECONDS = 300

/** A public post as oEmbed 1.0: a quotation with its source. A post that is not safe for work is a link. */
export function presentOembed(
  publicPost: PublicPost,
  { url, podName }: { readonly url: string; readonly podName: string },
): object {
  const { post, author } = publicPost
  const postUrl = `${url}/posts/${post.guid}`
  const name = presentName(author)
  const common = {
    version: '1.0',
    title: postTitle(inEnglish, publicPost),
    author_name: name,
    author_url: `${url}/people/${author.guid}`,
    provider_name: podName,
    provider_url: url,
    cache_age: CACHE_SECONDS,
  }
  if (isNsfw(publicPost)) return { type: 'link', ...common }
  const text = escapeHtml(buildSummary((publicPost.root ?? publicPost).post.text))
  const source = `<a href="${escapeHtml(postUrl)}">${escapeHtml(name)}, ${post.createdAt.toISOString().slice(0, 10)}</a>`
  return {
    type: 'rich',
    ...common,
    html: `<blockquote cite="${escapeHtml(postUrl)}"><p>${text}</p><footer>${source}</footer></blockquote>`,
    width: WIDTH,
    height: null,
  }
}
