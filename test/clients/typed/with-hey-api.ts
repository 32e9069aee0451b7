import { createComment, createPost, getMainStream, getPost } from './generated/hey-api'
import { createClient } from './generated/hey-api/client'

/** Creates a post, finds it in the main stream, comments on it, and handles errors by their reason. */
export async function useHeyApi(baseUrl: string, auth: string): Promise<readonly string[]> {
  const client = createClient({ baseUrl, auth })
  const results: string[] = []

  const created = await createPost({ client, body: { public: true, body: 'Typed hello' } })
  if (created.data === undefined) throw new Error(created.error.reason)
  const { guid } = created.data

  const stream = await getMainStream({ client, query: { per_page: 5 } })
  const found = stream.data?.find((post) => post.guid === guid)
  results.push(`post ${found?.body} by ${found?.author.name}`)

  const comment = await createComment({ client, path: { post_guid: guid }, body: { body: 'Typed comment' } })
  results.push(`comment ${comment.data?.body}`)

  const refused = await createPost({ client, body: { public: false, body: 'For nobody', aspects: [] } })
  if (refused.error?.reason === 'aspects_required') results.push(`${refused.error.reason}: ${refused.error.field}`)

  const missing = await getPost({ client, path: { post_guid: '0123456789abcdef' } })
  if (missing.error?.reason === 'post_not_found') results.push(missing.error.reason)
  return results
}
